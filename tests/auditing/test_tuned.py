"""The attacker that tunes a language model on the benchmark's own captions, with tiny models of two architectures."""

from __future__ import annotations

import numpy as np
import pytest

from creperie.auditing import AttackerModels, audit, make_attackers, pairs_of
from creperie.bench import Benchmark, Item, choice, from_items
from creperie.core import UsageError

torch = pytest.importorskip("torch", reason="creperie[models] is not installed")
transformers = pytest.importorskip("transformers", reason="creperie[models] is not installed")

THINGS = ("dog", "cat", "man", "girl", "horse", "bird")


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def lm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A language model with random weights that has each word of the captions as a token."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    known = ["<s>", "?", "a", "sees", "near", *THINGS]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(known)}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    torch.manual_seed(0)
    if request.param == "gpt2":
        config = transformers.GPT2Config(vocab_size=32, n_positions=32, n_embd=32, n_layer=2, n_head=2, **ends)
        model = transformers.GPT2LMHeadModel(config)
    else:
        sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=32, **sizes, **ends))
    folder = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(folder)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?", bos_token="<s>")
    fast.save_pretrained(folder)
    return f"lm:{folder}"


def bench(telling: bool, seed: int = 0, n: int = 120) -> Benchmark:
    """Captions of the same words in another order; if it tells, the true one begins with the earlier letter."""
    rng = np.random.default_rng(seed)
    items = []
    for k in range(n):
        one, two = sorted(rng.choice(THINGS, 2, replace=False))
        captions = [f"a {x} sees a {y}" + " near" * (k // 20) for x, y in ((one, two), (two, one))]
        if not telling and rng.random() < 0.5:
            captions.reverse()
        items.append(Item(str(k), "s", (f"{k}.jpg",), tuple(captions), choice(1, 1)))
    return from_items("b", items)


@pytest.fixture(autouse=True)
def rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that start at random have more to learn than those of a trained model."""
    monkeypatch.setattr("creperie.auditing.tuned.RATE", 3e-3)
    monkeypatch.setattr("creperie.auditing.tuned.HEAD_RATE", 3e-3)
    monkeypatch.setattr("creperie.auditing.tuned.EPOCHS", 8)


def reached(lm: str, asked: Benchmark) -> np.ndarray:
    (attacker,) = make_attackers(["tuned-lm"], AttackerModels(lm=lm))
    return attacker.margins(pairs_of(asked))


def test_it_learns_an_order_that_tells_and_nothing_from_random_roles(lm: str) -> None:
    assert np.mean(reached(lm, bench(True)) > 0) > 0.75
    assert 0.3 < np.mean(reached(lm, bench(False)) > 0) < 0.7


def test_no_answer_comes_from_a_model_that_saw_the_item(lm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from creperie.auditing import tuned

    tune, seen = tuned.margins_after_tuning, []

    def watched(adapter: object, learned: list[object], asked: list[object], seed: int) -> np.ndarray:
        seen.append(({str(pair) for pair in learned}, {str(pair) for pair in asked}))
        return tune(adapter, learned, asked, seed)  # type: ignore[arg-type]

    monkeypatch.setattr(tuned, "margins_after_tuning", watched)
    monkeypatch.setattr(tuned, "EPOCHS", 2)
    first, second = (reached(lm, bench(True)) for _ in range(2))
    assert np.array_equal(first, second)  # the seed decides
    assert len(seen) == 2 * tuned.FOLDS
    assert not any(learned & asked for learned, asked in seen)


def test_the_audit_runs_it_by_name_alone(lm: str) -> None:
    found = audit(bench(True), ["tuned-lm", "length-words"], lm=lm)
    row = next(r for r in found.rows if r.attacker == "tuned-lm")
    assert row.leaks
    assert found.verdict == "leaks"
    assert ", tuned-lm (" in found.text
    with pytest.raises(UsageError, match="cannot tune this model"):
        make_attackers(["tuned-lm"], AttackerModels(lm="blind:length"))
