"""Models that a researcher holds: scored as the same weights by URI, and never under another model's numbers."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny_rare
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from older import without_checksums

import creperie as cr
from creperie import plugin
from creperie.bench import Benchmark, Format, Item, from_items
from creperie.core import DataError, ModelError, UsageError
from creperie.models import Fingerprint, content_of
from creperie.scoring import ResultStore
from creperie.testing import tiny
from creperie.testing.tiny_llava import tiny_llava

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.tiny_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture
def pairs() -> Benchmark:
    texts = [f"a dog {'skates' if i == 13 else 'runs'} past {i} cats" for i in range(20)]
    return from_items("pairs", [Item.pair(positive=t, negative=t.replace("dog", "cow")) for t in texts])


def held(folder: Path) -> tuple[Any, Any]:
    """A model and its processor, as one loads them in a notebook."""
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer, CLIPProcessor

    images = AutoImageProcessor.from_pretrained(folder, backend="pil")
    return AutoModel.from_pretrained(folder), CLIPProcessor(images, AutoTokenizer.from_pretrained(folder))


# -- what is accepted ------------------------------------------------------------------------------------------------


def test_a_model_in_memory_is_the_model_of_its_uri(triples: Benchmark, clip_folder: Path) -> None:
    model, processor = held(clip_folder)
    model.train()
    before = {name: (w.data_ptr(), w.stride()) for name, w in model.named_parameters()}
    by_uri = cr.score(triples, f"hf:{clip_folder}", device="cpu")
    run = cr.score(triples, (model, processor))
    assert run.table == by_uri.table
    assert run.results == by_uri.results
    assert run.model == "memory:CLIPModel"
    assert all(layer.training for layer in model.modules()), "put back into training mode"
    assert {name: (w.data_ptr(), w.stride()) for name, w in model.named_parameters()} == before
    assert cr.score(triples, cr.wrap(model, processor=processor, name="mine")).model == "memory:mine"


def test_a_sentence_encoder_and_a_language_model(triples: Benchmark, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    folder = tiny.tiny_sentence_encoder(tmp_path / "st")
    run = cr.score(triples, SentenceTransformer(str(folder), device="cpu"))
    assert run.table == cr.score(triples, f"st:{folder}", device="cpu").table


def test_a_causal_language_model(triples: Benchmark, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

    from creperie.testing import tokenizers

    tokenizer = tokenizers.clip_tokenizer(77)
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=77)
    tiny.save(tmp_path / "lm", GPT2LMHeadModel(config), tokenizer)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "lm")
    run = cr.score(triples, cr.wrap(model, tokenizer=AutoTokenizer.from_pretrained(tmp_path / "lm")))
    assert run.table == cr.score(triples, f"lm:{tmp_path / 'lm'}", device="cpu").table
    assert run.tasks == ("blind",)


#: how to make a checkpoint, the class that holds it in memory, and the options of the URI
KEPT = {
    "siglip": (tiny_rare.tiny_siglip, "SiglipModel", {}),
    "blip": (tiny_rare.tiny_blip, "BlipForImageTextRetrieval", {}),
    "blip-itm": (tiny_rare.tiny_blip, "BlipForImageTextRetrieval", {"score": "itm"}),
    "flava": (tiny.tiny_flava, "FlavaModel", {}),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_encoders_in_memory_are_those_of_their_uri(name: str, triples: Benchmark, tmp_path: Path) -> None:
    import transformers

    make, kind, options = KEPT[name]
    folder = make(tmp_path / name)
    model = getattr(transformers, kind).from_pretrained(folder)
    parts = {
        "tokenizer": transformers.AutoTokenizer.from_pretrained(folder),
        "preprocess": transformers.AutoImageProcessor.from_pretrained(folder, backend="pil"),
    }
    run = cr.score(triples, cr.wrap(model, options=options, **parts))
    again = cr.score(triples, cr.wrap(model, options=options, **parts))
    assert all(use["computed"] == 0 for use in again.document["work"].values()), "scoring changes no content"
    asked = "&".join(f"{key}={value}" for key, value in options.items())
    assert run.table == cr.score(triples, f"hf:{folder}?{asked}".rstrip("?"), device="cpu").table


@pytest.mark.parametrize("options", [{"score": "vqa"}, {"score": "visualgpt"}])
def test_a_vision_language_model(options: dict[str, str], triples: Benchmark, tmp_path: Path) -> None:
    from transformers import AutoImageProcessor, AutoTokenizer, LlavaForConditionalGeneration, LlavaProcessor

    folder = tiny_llava(tmp_path / "llava")
    images = AutoImageProcessor.from_pretrained(folder, backend="pil")
    settings = LlavaProcessor.get_processor_dict(folder)[0]
    chosen = {k: v for k, v in settings.items() if k in ("patch_size", "vision_feature_select_strategy")}
    chosen["num_additional_image_tokens"] = settings.get("num_additional_image_tokens", 0)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    processor = LlavaProcessor(images, tokenizer, chat_template=tokenizer.chat_template, **chosen)
    model = LlavaForConditionalGeneration.from_pretrained(folder)
    before = model.config.to_dict()
    run = cr.score(triples, cr.wrap(model, processor=processor, options=options))
    assert run.table == cr.score(triples, f"vlm:{folder}?score={options['score']}", device="cpu").table
    assert model.config.to_dict() == before, "scoring leaves no trace"


def test_a_model_with_adapters_of_peft(triples: Benchmark, clip_folder: Path, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    model, processor = held(clip_folder)
    plain = cr.score(triples, (model, processor))
    tuned = get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
    torch.manual_seed(0)
    for name, weight in tuned.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    run = cr.score(triples, (tuned, processor))
    assert not np.allclose(run.scores("image_text"), plain.scores("image_text"), atol=1e-3)
    tuned.merge_and_unload().save_pretrained(tmp_path / "merged")
    processor.save_pretrained(tmp_path / "merged")
    merged = cr.score(triples, f"hf:{tmp_path / 'merged'}", device="cpu")
    np.testing.assert_allclose(run.scores("image_text"), merged.scores("image_text"), atol=1e-5)


def test_a_module_that_encodes(triples: Benchmark, clip_folder: Path) -> None:
    model, processor = held(clip_folder)

    class Towers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def encode_image(self, pixels: torch.Tensor) -> Any:
            return self.inner.get_image_features(pixel_values=pixels).pooler_output

        def encode_text(self, ids: torch.Tensor) -> Any:
            return self.inner.get_text_features(input_ids=ids).pooler_output

    def preprocess(image: Any) -> torch.Tensor:
        return torch.from_numpy(processor.image_processor(image, return_tensors="np")["pixel_values"][0])

    def tokenize(texts: list[str]) -> Any:
        return processor.tokenizer(texts, padding="max_length", max_length=77, return_tensors="pt")["input_ids"]

    whole = cr.score(triples, (model, processor))
    for given_ in ((Towers(), preprocess, tokenize), cr.wrap(Towers(), preprocess=preprocess, tokenizer=tokenize)):
        run = cr.score(triples, given_)
        np.testing.assert_allclose(run.scores("image_text"), whole.scores("image_text"), atol=2e-6)


def test_plain_objects_and_functions(triples: Benchmark) -> None:
    class One:
        """Encodes one input at a time, and forgets to normalise."""

        def encode_image(self, image: Any) -> list[float]:
            return [image.width, image.getpixel((0, 0))[0], 1.0]

        def encode_text(self, text: str) -> list[float]:
            return [len(text), text.count("cat"), 2.0]

    class Many:
        def encode_images(self, images: Any) -> np.ndarray:
            return np.array([One().encode_image(i) for i in images])

        def encode_texts(self, texts: Any) -> torch.Tensor:
            return torch.tensor([One().encode_text(t) for t in texts])

    one, many = cr.score(triples, One()), cr.score(triples, Many())
    np.testing.assert_allclose(one.scores("image_text"), many.scores("image_text"), atol=1e-6)
    Many.encode_texts = lambda self, texts: [[1.0]] * len(texts)  # type: ignore[method-assign,assignment]
    with pytest.raises(ModelError, match="3 dimensions, but caption vectors have 1"):
        cr.score(triples, Many())
    length = cr.score(triples, lambda captions: [-len(c) for c in captions])
    assert length.tasks == ("blind",)
    captions = triples[0].captions
    assert length.table.column("text")[0].as_py() == [-len(c) for c in captions]
    pairs = cr.score(
        triples, lambda images, captions: [i.width - len(c) for i, c in zip(images, captions, strict=True)]
    )
    assert pairs.table.column("image_text")[0].as_py() == [48 - len(c) for c in captions]


@pytest.mark.parametrize("model", [3, None, object(), int, lambda: 0, lambda a, b, c: 0])
def test_what_is_no_model_is_refused_in_one_line(triples: Benchmark, model: Any) -> None:
    with pytest.raises(UsageError, match=r"is not a model|of one or two arguments"):
        cr.score(triples, model)


def test_a_missing_processor_is_named(triples: Benchmark, clip_folder: Path) -> None:
    with pytest.raises(UsageError, match=r"tokenizer is missing.*processor="):
        cr.score(triples, held(clip_folder)[0])


# -- caching that cannot lie -----------------------------------------------------------------------------------------


def test_three_training_steps_give_three_right_numbers(triples: Benchmark, clip_folder: Path, tmp_path: Path) -> None:
    model, processor = held(clip_folder)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = processor(text=["a dog", "a cat"], images=None, return_tensors="pt", padding=True)
    seen: list[np.ndarray] = []
    for step in range(3):
        model.train()
        loss = model.get_text_features(**inputs).pooler_output.pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run = cr.score(triples, (model, processor))
        model.save_pretrained(tmp_path / str(step))
        processor.save_pretrained(tmp_path / str(step))
        by_uri = cr.score(triples, f"hf:{tmp_path / str(step)}", device="cpu")
        assert run.table == by_uri.table, "right"
        seen.append(run.scores("image_text"))
        assert cr.score(triples, (model, processor)).document["work"]["image"]["computed"] == 0
    assert not np.allclose(seen[0], seen[1])
    assert not np.allclose(seen[1], seen[2])


class Layers(torch.nn.Module):
    """Every place where a number that matters can be."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        self.second = torch.nn.ModuleList([torch.nn.LayerNorm(4), torch.nn.Embedding(5, 4)])
        self.register_buffer("saved", torch.randn(3))
        self.register_buffer("unsaved", torch.randn(2, 2), persistent=False)
        self.plain = torch.randn(2)
        self.coarse = torch.nn.Parameter(torch.randn(3).to(torch.bfloat16))


PLACES = [name for name, _ in Layers().named_parameters()]
BUFFERS = [name for name, value in Layers().named_buffers() if value.numel()]


@given(name=st.sampled_from([*PLACES, *BUFFERS, "plain"]), number=st.integers(0, 10**6), way=st.sampled_from("adi"))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_changed_weight_is_another_fingerprint(name: str, number: int, way: str) -> None:
    model = Layers()
    before = content_of(model)
    assert before.certain
    assert content_of(Layers()) == before
    *path, last = name.split(".")
    target = getattr(model.get_submodule(".".join(path)), last)
    at = number % target.numel()
    with torch.inference_mode() if way == "i" else torch.no_grad():
        flat = (target.data if way == "d" else target).view(-1)
        flat[at] = flat[at] + 1
    assert content_of(model) != before


def test_settings_and_preprocessing_are_part_of_the_content(triples: Benchmark, clip_folder: Path) -> None:
    model, processor = held(clip_folder)
    keys = [cr.score(triples, (model, processor)).document["model"]["key"]]
    processor.image_processor.image_mean = [0.1, 0.2, 0.3]
    keys.append(cr.score(triples, (model, processor)).document["model"]["key"])
    model.vision_model.encoder.layers[0].self_attn.scale *= 2
    keys.append(cr.score(triples, (model, processor)).document["model"]["key"])
    assert len(set(keys)) == 3


FACTOR = 1.0


class Notes:
    """What a model may hold beside its weights."""

    def __init__(self) -> None:
        self.table = {"crab": np.zeros(3)}
        self.back: Any = None


class Holder(torch.nn.Module):
    """A blind scorer whose numbers are decided by things that are no registered weights."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.line = torch.nn.Linear(2, 1)
        self.table = {"dog": 1.0}
        self.notes = Notes()
        self.notes.back = self
        self.loose = [torch.zeros(2)]

    @torch.no_grad()
    def score_texts(self, texts: list[str]) -> list[float]:
        rare = {t: 100.0 * (self.table["dog"] - 1) + float(self.loose[0].sum()) for t in texts if "skates" in t}
        extra = float(self.notes.table["crab"].sum())
        return [FACTOR * (len(t) + extra + rare.get(t, 0.0)) for t in texts]


def _write_table(model: Holder) -> None:
    model.table["dog"] = 2.0


def _write_nested(model: Holder) -> None:
    model.notes.table["crab"][1] = 7


def _write_loose(model: Holder) -> None:
    model.loose[0].data[0] = 3


def _hook(model: Holder) -> None:
    model.line.register_forward_hook(lambda *_: None)


@pytest.mark.parametrize("change", [_write_table, _write_nested, _write_loose, _hook])
def test_data_that_are_no_weights_are_part_of_the_content(change: Callable[[Holder], None]) -> None:
    before = content_of(Holder())
    assert before.certain
    assert content_of(Holder()) == before, "cycles end, and the same content is the same"
    model = Holder()
    change(model)
    assert content_of(model).digest != before.digest


def test_a_change_that_few_items_see_is_seen(pairs: Benchmark) -> None:
    """The probe looks at three captions only; here one in the middle of forty changes."""
    model = Holder()
    first = cr.score(pairs, model)
    assert cr.score(pairs, model).document["work"]["blind"]["computed"] == 0
    model.table["dog"] = 2.0
    changed = cr.score(pairs, model)
    assert np.count_nonzero(changed.scores("text") != first.scores("text")) == 2, "both captions of one item"
    assert changed.document["work"]["blind"]["stored"] == 0


@pytest.mark.parametrize("where", ["method", "global", "constant of the class", "method of a library"])
def test_code_is_part_of_the_content(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content_of(Holder())
    if where == "method":
        monkeypatch.setattr(Holder, "score_texts", lambda self, texts: [len(t) + 1 for t in texts])
    elif where == "global":
        monkeypatch.setitem(globals(), "FACTOR", 2.0)
    elif where == "constant of the class":
        monkeypatch.setattr(Holder, "constant", 3, raising=False)
    else:
        monkeypatch.setattr(torch.nn.Linear, "forward", lambda self, x: x)
    assert content_of(Holder()).digest != before.digest
    monkeypatch.undo()
    assert content_of(Holder()) == before


def test_what_cannot_be_hashed_is_not_stored(pairs: Benchmark, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for thing in ((tmp_path / "file").open(), (i for i in range(3)), threading.Lock(), ModuleType("own")):
        model = Holder()
        model.notes.back = [model, thing]
        cr.score(pairs, model)
        assert ResultStore().entries() == []
    cr.score(pairs, model, cache="mine")
    assert cr.score(pairs, model, cache="mine").document["work"]["blind"]["computed"] == 0


def test_a_hand_written_fingerprint_stores_nothing(triples: Benchmark) -> None:
    class Scorer:
        def __init__(self, sign: int, weights: np.ndarray | None = None) -> None:
            self.fingerprint = Fingerprint("mine:scorer", "mine", "as I typed it")
            self.sign, self.weights = sign, weights

        def score_texts(self, texts: Any) -> np.ndarray:
            return np.array([self.sign * len(t) for t in texts], np.float32)

    first = cr.score(triples, Scorer(1))
    for other in (cr.score(triples, Scorer(-1)), cr.score(triples, Scorer(-1, np.ones(3)))):
        np.testing.assert_array_equal(other.scores("text"), -first.scores("text"))
    assert len(ResultStore().entries()) == 1, "only what has weights"
    cr.score(triples, Scorer(1), cache="mine")
    with pytest.raises(ModelError, match=r"computed by another model.*cache=False"):
        cr.score(triples, Scorer(-1), cache="mine")


def test_functions_are_stored_under_a_name_only_and_probed(triples: Benchmark) -> None:
    def stored() -> int:
        return sum(entry.records for entry in ResultStore().entries())

    def scorer(sign: int) -> Callable[[list[str]], list[int]]:
        return lambda captions: [sign * len(c) for c in captions]

    cr.score(triples, scorer(1))
    assert stored() == 0
    named = cr.score(triples, scorer(1), cache="lengths")
    assert stored() == 15
    again = cr.score(triples, scorer(1), cache="lengths")
    assert again.document["work"]["blind"]["computed"] == 0
    assert again.table == named.table
    with pytest.raises(ModelError, match="computed by another model"):
        cr.score(triples, scorer(-1), cache="lengths")
    unnamed = cr.score(triples, scorer(-1))
    np.testing.assert_array_equal(unnamed.scores("text"), -named.scores("text"))


def test_cache_false_stores_and_takes_nothing(triples: Benchmark, clip_folder: Path) -> None:
    for model in (held(clip_folder), f"hf:{clip_folder}", "blind:length"):
        cr.score(triples, model, cache=False)
        run = cr.score(triples, model, cache=False)
        assert all(use["stored"] == 0 for use in run.document["work"].values())
    assert ResultStore().entries() == []


def test_another_precision_is_chosen_and_put_back(triples: Benchmark, clip_folder: Path) -> None:
    model, processor = held(clip_folder)
    before = {name: w.clone() for name, w in model.state_dict().items()}
    run = cr.score(triples, (model, processor), dtype="bfloat16", device="cpu")
    assert run.document["model"]["fingerprint"]["dtype"] == "bfloat16"
    assert run.table == cr.score(triples, f"hf:{clip_folder}", dtype="bfloat16", device="cpu").table
    assert all(torch.equal(w, before[name]) for name, w in model.state_dict().items())


def test_no_bars_and_no_reports_of_other_libraries(
    triples: Benchmark, clip_folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from sentence_transformers import SentenceTransformer

    sentences = SentenceTransformer(str(tiny.tiny_sentence_encoder(tmp_path / "st")), device="cpu")
    model, processor = held(clip_folder)
    capfd.readouterr()
    for given_ in (f"hf:{clip_folder}", (model, processor), f"st:{tmp_path / 'st'}", sentences):
        cr.score(triples, given_, device="cpu", progress=None, cache=False)
    cr.refine(triples, attackers=["length-words"], audit=False, progress=None)
    assert capfd.readouterr() == ("", "")


def test_bars_in_notebooks(triples: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel is asked to show a bar below the cell, and to take it away; `progress=None` asks for none."""
    drawn: list[str] = []

    class ZMQInteractiveShell:
        """What IPython calls the shell of a notebook."""

    def display(shown: str, display_id: bool) -> Any:
        return SimpleNamespace(update=drawn.append)

    shell = ModuleType("IPython")
    shell.get_ipython = ZMQInteractiveShell  # type: ignore[attr-defined]
    shown = ModuleType("IPython.display")
    shown.HTML, shown.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    cr.score(triples, lambda captions: [len(c) for c in captions])
    assert any(text.startswith("<progress") and "captions" in text for text in drawn)
    assert drawn[-1] == ""
    drawn.clear()
    cr.score(triples, lambda captions: [len(c) for c in captions], progress=None)
    assert drawn == []


def test_audits_and_refinements_without_the_store(triples: Benchmark, tmp_path: Path) -> None:
    encoder = f"st:{tiny.tiny_sentence_encoder(tmp_path / 'st')}"
    how = {"encoder": encoder, "cache": False}
    first = cr.audit(triples, ["similarity"], **how)
    cr.refine(triples, attackers=["similarity"], audit=False, **how)
    assert ResultStore().entries() == []
    stored = cr.audit(triples, ["similarity"], encoder=encoder)
    assert len(ResultStore().entries()) == 1
    assert [row.measure.accuracy for row in stored.rows] == [row.measure.accuracy for row in first.rows]


# -- plug-ins of a program -------------------------------------------------------------------------------------------


def test_a_registered_model_returns_whatever_score_takes(pairs: Benchmark, triples: Benchmark) -> None:
    @cr.register_model("longest")
    def longest(uri: Any, options: Any, place: Any) -> Any:
        return lambda captions: [len(c) * float(uri.name) for c in captions]

    run = cr.score(pairs, "longest:2")
    assert run.model == "longest:2"
    assert run.scores("text")[0] == 2 * len(pairs[0].captions[0])
    assert ResultStore().entries() == [], "a function stores nothing, however it is named"
    adapter: Any = cr.load_model("longest:3")
    assert adapter.score_texts(["abc"]).tolist() == [9.0]
    cr.register_model(lambda uri, options, place: cr.wrap(Holder().train(), name="held"), name="holder")
    assert cr.score(pairs, "holder:x").model == "holder:x"
    assert len(ResultStore().entries()) == 1
    cr.register_model(lambda uri, options, place: 3, name="three")
    with pytest.raises(UsageError, match="int is not a model; pass a model URI"):
        cr.score(pairs, "three:x")


def test_plug_ins_that_cannot_be_are_refused_in_one_line() -> None:
    for register, own, arguments in (
        (cr.register_model, "hf", "uri, options, place"),
        (plugin.register_maker, "rules:swap", "name, options, captions"),
        (plugin.register_attacker, "length-words", "models"),
        (plugin.register_format, "sugarcrepe", "source"),
    ):
        with pytest.raises(UsageError, match=f"built-in .* called {own!r}; register yours under another name"):
            register(lambda *given: None, name=own)
        with pytest.raises(UsageError, match=rf"'mine' cannot be called .*; write a function of \({arguments}\)"):
            register(lambda: None, name="mine")


def test_a_function_is_a_format(tmp_path: Path) -> None:
    @plugin.register_format("lines")
    def lines(source: Any) -> Any:
        pairs = [line.split("|") for line in source.path.read_text().splitlines()]
        return cr.load([Item.pair(positive=a, negative=b) for a, b in pairs])

    (tmp_path / "x.txt").write_text("a dog|a cat\na cup|a ball\n")
    assert cr.load(f"lines:{tmp_path / 'x.txt'}")[1].captions == ("a cup", "a ball")
    assert Format("n", "t", "a", lines).write is None


# -- what earlier releases wrote -------------------------------------------------------------------------------------


def test_runs_of_another_version_say_what_to_do(triples: Benchmark, tmp_path: Path) -> None:
    run = cr.score(triples, lambda captions: [len(c) for c in captions], out=tmp_path)
    assert run.path is not None
    document = json.loads((without_checksums(run.path) / "run.json").read_text())
    for name in ("work", "coverage", "notes", "finding_counts", "written_by"):  # not in every release
        document.pop(name, None)
    (run.path / "run.json").write_text(json.dumps(document))
    earlier = cr.load_run(run.path)
    assert earlier.table == run.table
    assert [r.accuracy for r in earlier.evaluate()] == [r.accuracy for r in run.evaluate()]
    assert len(earlier.frame()) == len(run.frame())
    assert cr.load_run(tmp_path).path == run.path, "where it was saved"
    with pytest.raises(UsageError, match=r"is a run, not a benchmark; read it with `creperie\.load_run`"):
        cr.load(run.path)
    (run.path / "run.json").write_text(json.dumps({**document, "creperie": 99}))
    with pytest.raises(DataError, match=r"version 99.*score it again"):
        cr.load_run(run.path)


def test_a_store_of_another_version_is_set_aside(triples: Benchmark, clip_folder: Path) -> None:
    """Segments that this release cannot read serve nothing, and `creperie cache repair` removes them."""
    uri = f"hf:{clip_folder}"
    first = cr.score(triples, uri, device="cpu")
    for segment in ResultStore().root.rglob("*.seg"):
        segment.write_bytes(segment.read_bytes().replace(b"CREPSEG1", b"CREPSEG0"))
    again = cr.score(triples, uri, device="cpu")
    assert again.document["work"]["text"]["stored"] == 0
    assert again.table == first.table
    assert cr.score(triples, uri, device="cpu").document["work"]["text"]["computed"] == 0
