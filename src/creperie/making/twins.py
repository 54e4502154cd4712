"""Mining of natural twins: two almost equal captions of two images, each false of the other image.

Nobody wrote these foils: every caption is true of one image and false of the other. A model that sees only the text, or
only the images, is therefore right half of the time, whatever it has learned.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from creperie.bench import LEVELS, PAIRED, Item
from creperie.core import by_key, check_name
from creperie.lang import CONTRADICTED, Spatial, exchange_truth, open_wordnet, parse, spatial, truth
from creperie.making.candidate import IN_ANOTHER, Candidate, Proposal
from creperie.making.checks import why_unfit
from creperie.making.contrasts import swapped_attributes
from creperie.making.corpus import WordCounts
from creperie.making.options import MakerOptions
from creperie.making.pipeline import Maker
from creperie.making.source import Captions, SourceCaption
from creperie.making.swaps import swapped_objects
from creperie.making.twins_match import (
    NEAR_BITS,
    ORDER,
    CrossedCell,
    Edge,
    Evidence,
    difference_hash,
    matched,
    neighbours,
    weigh,
)
from creperie.making.twins_words import (
    CaptionWord,
    Contrast,
    base,
    contrast_of,
    depends_on_viewpoint,
    differ_in_number,
    difference,
    replaced_kind,
    words_of,
)

NAME = "mine:twins"
_FILE_NAME = re.compile(r"\S+\.(?:jpe?g|png|gif|webp|bmp|tiff?)", re.IGNORECASE)
NO_EVIDENCE = Evidence()
#: Kind of twins with the same words in another order → the function that swaps them, what it exchanges, its name.
SWAPS = {
    "swap_att": (swapped_attributes, "attributes", "exchanged attributes"),
    "swap_obj": (swapped_objects, "names", "exchanged roles"),
}


@dataclass(frozen=True, slots=True)
class TwinPair:
    """Two captions that were compared, and the result: how they differ and what the evidence is, or the reason why
    they are not twins.
    """

    left: int  #: index of the first caption's source
    right: int  #: index of the second caption's source
    kind: str = ""
    edit: str = ""
    contrast: Contrast | None = None
    evidence: Evidence = NO_EVIDENCE
    reason: str = ""  #: why they are not twins


@dataclass(frozen=True)
class TwinMiner(Maker):
    """A maker that proposes twins for each caption: almost equal captions of other images. All twins are searched for
    once, before the first proposal.
    """

    mined: Mapping[str, Sequence[Candidate]]  #: candidates by the id of the first caption
    skipped: Mapping[str, str]  #: id of a caption → why it has no twin; otherwise it had no neighbour
    partners: frozenset[str]  #: ids of captions that are second in a twin
    parses: bool = False
    note: str = ""
    normalises = True

    def propose(self, sources: Sequence[SourceCaption]) -> Iterator[Proposal]:
        for source in sources:
            if candidates := self.mined.get(source.id):
                yield Proposal(candidates)
            elif source.id in self.partners:
                yield Proposal(skipped=IN_ANOTHER)
            else:
                yield Proposal(skipped=self.skipped.get(source.id) or "no caption of another image is almost the same")

    def takes(self, kind: str) -> bool:
        return True

    def items(self, source: SourceCaption, accepted: Sequence[Candidate]) -> list[Item]:
        """Return one item for each accepted twin of the caption. An item has two images and two captions, and each
        caption is true only of its own image.
        """
        items = []
        for c in accepted:
            tags = dict(c.tags)
            other = str(tags.pop("other_image"))
            key = f"{source.id}+{tags['other']}"
            tags |= {"maker": self.name, "edit": c.edit}
            items.append(Item(key, c.subset, (source.images[0], other), (source.text, c.text), PAIRED, tags))
        return items


def twin_miner(name: str, options: MakerOptions, captions: Captions) -> TwinMiner:
    """Search all captions, and return the maker `mine:twins`."""
    check_name("evidence level", options.evidence, LEVELS)
    open_wordnet()  # fails now if WordNet is missing
    search = TwinSearch(captions, options)
    pairs = search.pairs()
    twins = ((pair, search.sources[pair.left], search.sources[pair.right]) for pair in pairs)
    mined = by_key((left.id, _candidate(pair, left, right)) for pair, left, right in twins)
    partners = frozenset(search.sources[p.right].id for p in pairs)
    return TwinMiner(NAME, options, mined, search.skipped, partners, True, search.note(pairs))


def _candidate(pair: TwinPair, left: SourceCaption, right: SourceCaption) -> Candidate:
    tags = {"other": right.id, "other_image": right.images[0] if right.images else ""}
    if pair.evidence.level:
        tags |= {"evidence": pair.evidence.level, "basis": pair.evidence.basis}
    if pair.contrast is not None:
        tags["contrast"] = pair.contrast.name
    kind = pair.kind or "twin"
    return Candidate(left.id, right.text, "negative", kind, NAME, pair.edit, kind, tags, pair.reason)


@dataclass
class TwinSearch:
    """A search for twins in steps: find neighbouring captions, determine how they differ, weigh the evidence, compare
    the images, and choose pairs. Only captions with a neighbour are held in memory.
    """

    captions: Captions
    options: MakerOptions
    sources: dict[int, SourceCaption] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def pairs(self) -> list[TwinPair]:
        joined = self._joined()
        self._read(joined)
        typed = self._typed([self._screened(*row) for row in joined])
        weighed = [self._weighed(pair) for pair in typed]
        return self._matched(self._of_distinct_images(weighed))

    def note(self, pairs: Sequence[TwinPair]) -> str:
        """Return a sentence with the number of twins whose captions have the same words in another order: a model
        that ignores word order cannot tell these apart. The sentence is empty if there are no twins.
        """
        kept = [pair for pair in pairs if not pair.reason]
        same = sum(self._has_same_words(pair) for pair in kept)
        return f"{same:,} of {len(kept):,} twins have the same words in another order" if kept else ""

    def _has_same_words(self, pair: TwinPair) -> bool:
        one, two = (sorted(w.base for w in self.words[number]) for number in (pair.left, pair.right))
        return one == two

    def _joined(self) -> list[tuple[int, int, int]]:
        """Return the pairs of captions that differ little, each as (left number, right number, `ORDER` or `PHRASE`):
        they differ in word order, or in a few neighbouring words. Captions of the same image are not yet excluded.
        """
        pairs = {(left, right): kind for left, right, kind in reversed(neighbours(self._texts()))}
        return [(*pair, kind) for pair, kind in sorted(pairs.items())]  # once, even if joined by order and by a phrase

    def _texts(self) -> Iterator[str]:
        """Yield the text of each caption. If a caption is left out, yield an empty text and record the reason in
        `skipped`.
        """
        times: Counter[str] = Counter()
        images: set[str] = set()
        for source in self.captions.sources:
            reason = _why_not(source)
            if reason:
                self.skipped[source.id] = reason
            yield "" if reason else source.text
            images.update(source.images[:1] if len(images) < 2 else ())
            times[source.text] += 1
        for source in self.captions.sources:
            if source.id not in self.skipped and len(images) == 1:
                self.skipped[source.id] = "all captions are of one image"
            elif source.id not in self.skipped and times[source.text] > 1:
                self.skipped[source.id] = "the same caption belongs to several images"

    def _read(self, joined: Sequence[tuple[int, int, int]]) -> None:
        """Store the captions that occur in these pairs, and the words of each. For each of their images, also store the
        words of all true captions.
        """
        wanted = {number for left, right, _ in joined for number in (left, right)}
        self.sources = {number: s for number, s in enumerate(self.captions.sources) if number in wanted}
        self.words = {number: words_of(source.text) for number, source in self.sources.items()}
        images = {s.images[0] for s in self.sources.values()}
        self.true_captions: dict[str, dict[str, frozenset[str]]] = {}
        for source in self.captions.sources:
            if source.images and source.images[0] in images:
                words = frozenset(w.base for w in words_of(source.text))
                self.true_captions.setdefault(source.images[0], {})[source.text] = words

    def _screened(self, left: int, right: int, kind: int) -> TwinPair:
        """Return the pair, judged by the words of its captions alone. Its `contrast` is set if two differing words
        exclude each other, and its `reason` if the captions are not twins. If neither is set, the captions must be
        parsed to decide. `kind` is `ORDER` or `PHRASE` (see `_joined`).
        """
        one, two = self.sources[left], self.sources[right]
        if one.images[0] == two.images[0]:
            return TwinPair(left, right, reason="captions of the same image")
        if (read := spatial(one.text)) and (other := spatial(two.text)):
            return self._spatial(TwinPair(left, right), read, other)
        if kind == ORDER:
            return TwinPair(left, right, edit="other order")
        differing = difference(self.words[left], self.words[right])
        contrast = contrast_of(differing)
        if isinstance(contrast, str):
            return TwinPair(left, right, edit=differing.edit, reason=contrast)
        return TwinPair(left, right, edit=differing.edit, contrast=contrast)

    def _spatial(self, pair: TwinPair, one: Spatial, two: Spatial) -> TwinPair:
        """Judge a pair of captions of the form "the X is … the Y" by their spatial relations, and return the pair
        with the result. `one` and `two` are the parsed left and right captions.
        """
        own_view = depends_on_viewpoint(one.relation)
        swapped = one.relation == two.relation and (one.subject, one.object) == (two.object, two.subject)
        if swapped:
            name, kind, edit = "exchanged roles", "swap_obj", (one.subject, two.subject)
        elif (one.subject, one.object) == (two.subject, two.object):
            name, kind, edit = "opposite relations", "spatial", (one.relation, two.relation)
        elif one.relation == two.relation and (one.subject == two.subject or one.object == two.object):
            name, kind = "", "replace_obj"
            edit = (one.subject, two.subject) if one.object == two.object else (one.object, two.object)
        else:
            return replace(pair, reason="more than one phrase differs")
        verdict = truth(one.said(), two.said())
        excluded = verdict.word == CONTRADICTED and not (swapped and own_view)
        contrast = Contrast(name, kind, *edit) if excluded else None
        reason = "" if excluded else "depends on the point of view" if own_view else verdict.reason.partition(":")[0]
        if all(self._label(i, c) is False for i, c in self._crossed(pair)):
            reason = ""  # people found both crossed cells false
        return replace(pair, kind=kind, edit=" ↔ ".join(edit), contrast=contrast, reason=reason)

    def _typed(self, pairs: list[TwinPair]) -> list[TwinPair]:
        waiting = sorted({n for p in pairs if not p.reason and not p.kind for n in (p.left, p.right)})
        docs = dict(zip(waiting, parse([self.sources[n].text for n in waiting], self.options.parser), strict=True))
        return [self._with_kind(p, docs) if not p.reason and not p.kind else p for p in pairs]

    def _with_kind(self, pair: TwinPair, docs: Mapping[int, Any]) -> TwinPair:
        both, words = ((of[pair.left], of[pair.right]) for of in (docs, self.words))
        if pair.contrast is None:
            kind, contrast, reason = _swapped(both[0], words[1])
            return replace(pair, kind=kind, contrast=contrast, reason=reason)
        differing = difference(*words)
        kind, reason = replaced_kind(differing, pair.contrast, both)
        if not reason and kind != "number" and differ_in_number(both):
            reason = "a noun also differs in number"
        return replace(pair, kind=kind, reason=reason)

    def _crossed(self, pair: TwinPair) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return the two crossed pairs, in which each image is combined with the caption of its twin: (left image,
        right caption) and (right image, left caption).
        """
        left, right = self.sources[pair.left], self.sources[pair.right]
        return (left.images[0], right.text), (right.images[0], left.text)

    def _label(self, image: str, caption: str) -> bool | None:
        if caption in self.true_captions.get(image, {}):
            return True
        return False if (image, caption) in self.captions.false else None

    def _weighed(self, pair: TwinPair) -> TwinPair:
        if pair.reason:
            return pair
        cells = []
        for (image, caption), number in zip(self._crossed(pair), (pair.left, pair.right)):
            own = self.sources[number].text
            others = tuple(words for text, words in self.true_captions[image].items() if text != own)
            cells.append(CrossedCell(self._label(image, caption), others))
        shared = {w.base for w in self.words[pair.left]} & {w.base for w in self.words[pair.right]}
        evidence = weigh(pair.contrast, cells, shared)
        reason = evidence.reason
        if not reason and LEVELS.index(evidence.level) > LEVELS.index(self.options.evidence):
            reason = f"evidence below {self.options.evidence}"
        return replace(pair, evidence=evidence, reason=reason)

    def _of_distinct_images(self, pairs: list[TwinPair]) -> list[TwinPair]:
        """Return all pairs. A pair is rejected if its two images are near-duplicates or if one of them cannot be read.
        If there are no images, the pairs are unchanged.
        """
        if not self.captions.images.location:
            return pairs
        hashed = cache(partial(difference_hash, self.captions.images))

        def why_alike(pair: TwinPair) -> str:
            one, two = map(hashed, self._images(pair))
            if one is None or two is None:
                return "an image cannot be read"
            return "near-duplicate images" if int((one != two).sum()) <= NEAR_BITS else ""

        return [pair if pair.reason else replace(pair, reason=why_alike(pair)) for pair in pairs]

    def _matched(self, pairs: list[TwinPair]) -> list[TwinPair]:
        """Return all pairs, some of them now rejected, so that no image or caption is in two accepted pairs of the same
        kind.

        Among pairs that share an image or caption, those with the same words in another order are preferred, then those
        with better evidence.
        """
        kept: set[int] = set()
        for kind in sorted({p.kind for p in pairs if not p.reason}):
            numbers = [n for n, p in enumerate(pairs) if not p.reason and p.kind == kind]
            ranks = [
                LEVELS.index(pairs[n].evidence.level) + (0 if self._has_same_words(pairs[n]) else len(LEVELS))
                for n in numbers
            ]
            edges = [Edge(*self._images(pairs[n]), rank) for n, rank in zip(numbers, ranks)]
            kept.update(numbers[k] for k in matched(edges))
        used = "an image or caption is used by another twin of the kind"
        return [p if p.reason or n in kept else replace(p, reason=used) for n, p in enumerate(pairs)]

    def _images(self, pair: TwinPair) -> tuple[str, str]:
        return self.sources[pair.left].images[0], self.sources[pair.right].images[0]


def _swapped(doc: Any, other: Sequence[CaptionWord]) -> tuple[str, Contrast | None, str]:
    """Return (kind, contrast, "") if swapping two words of the first caption gives the words of the other and changes
    the scene; else ("", None, reason).
    """
    wanted = [w.base for w in other]
    for kind, (swap, exchange, name) in SWAPS.items():
        for pair in (edit.pair for edit in swap(doc, WordCounts()) if [w.base for w in words_of(edit.text)] == wanted):
            if pair and exchange_truth(doc, *pair, exchange).word == CONTRADICTED:
                return kind, Contrast(name, kind, *(base(t.lower_) for t in pair)), ""
    return "", None, "the order changes, not who does what"


def _why_not(source: SourceCaption) -> str:
    if not source.images:
        return "no image"
    if _FILE_NAME.fullmatch(source.text.strip()):
        return "a file name, not a caption"
    return why_unfit(source.text) or ""
