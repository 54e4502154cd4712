"""The attackers by name: what each needs, and which are sent when nobody chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec

from creperie.auditing.attackers import Attacker, TextAttacker, scored
from creperie.auditing.cached_models import CachedEncoder, CachedScorer, TokenScorer
from creperie.auditing.learned import NAMES as LEARNED
from creperie.auditing.learned import LearnedAttacker, Learner
from creperie.auditing.oddone import OddOneOut, by_characters, by_embedding
from creperie.core import UsageError, load_plugin, missing_extra
from creperie.models import ModelURI, TextEncoder, TextScorer, load_model, parse_uri


@dataclass(frozen=True)
class AttackerModels:
    """What attackers are made with: the models they may use (URIs, empty for none) and the seed.

    Attackers made with the same models share their work: make them together.
    """

    seed: int = 0
    lm: str = ""  #: lm-mean and lm-sum
    encoder: str = ""  #: similarity, and the learned attackers where given
    plausibility: str = ""  #: a Vera checkpoint
    grammar: str = ""  #: a CoLA classifier; link-grammar where empty

    @cached_property
    def language_model(self) -> CachedScorer:
        return _scorer(self.lm)

    @cached_property
    def text_encoder(self) -> TextEncoder | None:
        if not self.encoder:
            return None
        model = load_model(self.encoder)
        if not isinstance(model, TextEncoder):
            raise UsageError(
                "this model does not encode captions", where=self.encoder, hint="pass `encoder='st:MODEL'`"
            )
        return CachedEncoder(model)

    @cached_property
    def learner(self) -> Learner:
        return Learner(self.seed, self.text_encoder)


def length_words(models: AttackerModels) -> Attacker:
    return TextAttacker(
        "length-words", scored(lambda t: -len(t.split())), "the caption with fewer words", "the caption with more words"
    )


def length_chars(models: AttackerModels) -> Attacker:
    return TextAttacker(
        "length-chars", scored(lambda t: -len(t)), "the caption with fewer letters", "the longer caption"
    )


def length_tokens(models: AttackerModels) -> Attacker:
    from creperie.lang import tokens

    return TextAttacker(
        "length-tokens",
        scored(lambda t: -len(tokens(t))),
        "the caption with fewer words and marks",
        "the caption with more words and marks",
    )


def surface(models: AttackerModels) -> Attacker:
    from creperie.lang import untidiness

    return TextAttacker("surface", scored(untidiness), "the untidier caption", "the tidier caption")


def negation(models: AttackerModels) -> Attacker:
    from creperie.lang import negations

    return TextAttacker(
        "negation",
        scored(lambda t: -negations(t)),
        "the caption with fewer negations",
        "the caption with more negations",
    )


def frequency(models: AttackerModels) -> Attacker:
    from creperie.lang import mean_zipf

    return TextAttacker("frequency", scored(mean_zipf), "the caption with commoner words", "the one with rarer words")


def rarity(models: AttackerModels) -> Attacker:
    from creperie.lang import rarest_zipf

    return TextAttacker(
        "rarity", scored(rarest_zipf), "the caption without the rarest word", "the caption with the rarest word"
    )


def lm_mean(models: AttackerModels) -> Attacker:
    return _likelihood("lm-mean", "mean", models)


def lm_sum(models: AttackerModels) -> Attacker:
    return _likelihood("lm-sum", "sum", models)


def _likelihood(name: str, reduce: str, models: AttackerModels) -> Attacker:
    said = "the likelier caption", "the less likely caption"
    if not models.lm:
        raise UsageError(f"the attacker {name!r} needs a language model", hint="pass `lm='lm:MODEL'`")
    model = models.language_model
    if isinstance(model.model, TokenScorer):
        return TextAttacker(name, partial(model.likelihoods, reduce=reduce), *said)
    own = parse_uri(models.lm)
    scorer = _scorer(str(ModelURI(own.kind, own.name, {**own.options, "reduce": reduce})))
    return TextAttacker(name, scorer.score_texts, *said)


def _scorer(uri: str) -> CachedScorer:
    model = load_model(uri)
    if not isinstance(model, TextScorer):
        raise UsageError("this model does not score captions", where=uri, hint="pass a language model: `lm='lm:MODEL'`")
    return CachedScorer(model)


def similarity(models: AttackerModels) -> Attacker:
    return OddOneOut(by_embedding(models.text_encoder) if models.text_encoder else by_characters)


def plausibility(models: AttackerModels) -> Attacker:
    from creperie.auditing.plausibility import load_vera

    if not models.plausibility:
        raise UsageError("the attacker 'plausibility' needs a Vera checkpoint", hint="pass `plausibility='hf:MODEL'`")
    model = CachedScorer(load_vera(models.plausibility))
    return TextAttacker("plausibility", model.score_texts, "the more plausible caption", "the less plausible caption")


def grammar(models: AttackerModels) -> Attacker:
    said = "the more grammatical caption", "the less grammatical caption"
    if models.grammar:
        from creperie.auditing.acceptability import load_cola

        return TextAttacker("grammar", CachedScorer(load_cola(models.grammar)).score_texts, *said)
    from creperie.lang import grammaticalities

    return TextAttacker("grammar", grammaticalities, *said, batch=4096)


def gruen(models: AttackerModels) -> Attacker:
    from creperie.auditing.gruen import load_gruen

    model = CachedScorer(load_gruen(models.lm, models.grammar))
    return TextAttacker("gruen", model.score_texts, "the caption of better GRUEN", "the caption of worse GRUEN")


def learned(models: AttackerModels) -> Attacker:
    return LearnedAttacker("learned", models.learner)


def learned_linear(models: AttackerModels) -> Attacker:
    return LearnedAttacker("learned-linear", models.learner)


def learned_boosted(models: AttackerModels) -> Attacker:
    return LearnedAttacker("learned-boosted", models.learner)


ATTACKERS: dict[str, Callable[[AttackerModels], Attacker]] = {
    "length-words": length_words,
    "length-chars": length_chars,
    "length-tokens": length_tokens,
    "surface": surface,
    "negation": negation,
    "frequency": frequency,
    "rarity": rarity,
    "similarity": similarity,
    "grammar": grammar,
    "gruen": gruen,
    "plausibility": plausibility,
    "lm-mean": lm_mean,
    "lm-sum": lm_sum,
    "learned": learned,
    "learned-linear": learned_linear,
    "learned-boosted": learned_boosted,
}
#: Installed packages add attackers by entry points of this group: functions from `AttackerModels` to `Attacker`.
GROUP = "creperie.attackers"
#: What is sent when nobody chooses; those with a model only where it is given.
STANDARD = ("length-words", "length-chars", "surface", "negation", "frequency", "rarity", "similarity")


def make_attackers(names: Iterable[str], models: AttackerModels) -> list[Attacker]:
    """The attackers of these names, in this order."""
    return [_maker(name)(models) for name in dict.fromkeys(names)]


def _maker(name: str) -> Callable[[AttackerModels], Attacker]:
    if name in ATTACKERS:
        return ATTACKERS[name]
    maker: Callable[[AttackerModels], Attacker] = load_plugin(GROUP, "attacker", name, ATTACKERS)
    return maker


def sendable(asked: Sequence[str], models: AttackerModels) -> tuple[list[str], dict[str, str]]:
    """The names to send, and what of the standard battery cannot be sent, with the reason.

    Nothing asked means the standard battery; names that begin with + are sent beside it. What is asked for by name
    must be sendable: then a missing package is an error.
    """
    extra = [name.removeprefix("+") for name in asked]
    if asked and not all(name.startswith("+") for name in asked):
        return extra, {}
    names, not_sent = [], {}
    for name in standard_names(models):
        module, _, extra_name = NEEDS.get(name, "").partition("|")
        if module and find_spec(module) is None:
            not_sent[name] = str(missing_extra(module, extra_name))
        else:
            names.append(name)
    return [*names, *extra], not_sent


#: Python package | extra that a standard attacker needs.
NEEDS = {
    "frequency": "wordfreq|lang",
    "rarity": "wordfreq|lang",
    "similarity": "rapidfuzz|lang",
    "learned": "sklearn|stats",
    "learned-linear": "sklearn|stats",
    "learned-boosted": "sklearn|stats",
}


def standard_names(models: AttackerModels) -> list[str]:
    """The battery that is sent when nobody chooses; what needs a model, where it is given."""
    likelihood = ["lm-mean", "lm-sum"] if models.lm else []
    plausible = ["plausibility"] if models.plausibility else []
    grammatical = ["grammar"] if models.grammar else []
    return [*STANDARD, *likelihood, *plausible, *grammatical, *LEARNED]
