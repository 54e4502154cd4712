"""Benchmarks in other harnesses give the same hits as here. Each test needs the real package, and skips without it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from creperie.bench import NO_IMAGES, Benchmark, Item, from_items, save
from creperie.core import DataError, UsageError
from creperie.engine import open_captions
from creperie.models import ChoiceQuestion, Chosen, Fingerprint
from creperie.scoring import (
    ResponseOptions,
    Run,
    UnmatchedError,
    compare,
    export_inspect,
    export_lmms,
    import_replies,
    import_responses,
    score,
)
from creperie.scoring.bridges import questions_of
from creperie.world import World, make_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Pairs, (P1, P2, N) and two images with two captions: one fits, one does not, and neither."""
    place = tmp_path_factory.mktemp("world")
    made = make_world(
        World(items=4, kinds=("swap_obj", "replace_att"), forms=("choice", "triple", "winoground"), size=32)
    )
    return save(replace(made, name="My world!"), place / "world", copy_images=True)


def pick(options: Sequence[str]) -> int:
    """A rule that depends on what is offered, and on its order where two captions are equally long."""
    return max(range(len(options)), key=lambda k: len(options[k]))


class Rule:
    """The rule as a model of creperie."""

    fingerprint = Fingerprint("rule:longest", "Rule", "1")
    asks = ("match", "odd")
    order = "all"

    def choose(self, questions: Sequence[ChoiceQuestion]) -> list[Chosen]:
        return [Chosen(np.eye(len(q.options), dtype=np.float32)[pick(q.options)]) for q in questions]


def hits(results: Sequence[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    own = [r for r in results if r["task"] in ("itt", "tot") and r["subset"] != "macro"]
    return {r["subset"]: (r["hits"], r["ties"]) for r in own}


@pytest.mark.slow
def test_lmms_eval_loads_the_task_and_its_samples_give_the_hits_of_score(
    world: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real package reads the folder; its own loop runs a model that answers by our rule."""
    pytest.importorskip("lmms_eval.tasks", reason="lmms_eval is not installed")
    from lmms_eval.tasks import TaskManager, get_task_dict

    monkeypatch.setenv("CREPERIE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    export_lmms(world, tmp_path / "task")
    manager = TaskManager(include_path=str(tmp_path / "task"), include_defaults=False)
    (name,) = [n for n in manager.all_tasks if n.startswith("creperie_")]
    task = get_task_dict([name], manager)[name]
    lines = []
    for number, doc in enumerate(task.test_docs()):
        assert task.doc_to_visual(doc)[0].size == (32, 32)
        assert all(option in task.doc_to_text(doc) for option in doc["options"])
        said = f"({pick(doc['options']) + 1})"
        right = doc["options"][pick(doc["options"])] == task.doc_to_target(doc)
        assert task.process_results(doc, [said]) == {"accuracy": float(right)}
        # as its evaluation tracker writes them: without the document, one answer unpacked
        lines.append(json.dumps({"doc_id": number, "target": doc["target"], "filtered_resps": said}))
    (tmp_path / f"20261115_samples_{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    theirs = import_replies(tmp_path / f"20261115_samples_{name}.jsonl", world, model="rule")
    assert hits(theirs.results) == hits(score(world, Rule(), tasks=["itt"]).results)  # type: ignore[arg-type]


def test_inspect_runs_the_task_and_its_log_gives_the_hits_of_score(
    world: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real package runs its mock model, which answers by our rule; the scorer is the task's own."""
    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    export_inspect(world, tmp_path / "task")
    rows = [json.loads(line) for line in (tmp_path / "task" / "samples.jsonl").read_text("utf-8").splitlines()]
    options = {row["question"]: row["options"] for row in rows}

    def answer(messages: Any, *_: Any) -> Any:
        said = ModelOutput.from_content("mockllm/model", f"({pick(options[messages[-1].text]) + 1})")
        said.usage = ModelUsage()  # else it fetches a tokenizer to count tokens
        return said

    model = get_model("mockllm/model", custom_outputs=answer)
    monkeypatch.chdir(tmp_path / "task")
    (log,) = inspect_ai.eval("task.py", model, log_dir=str(tmp_path / "logs"), display="none")
    right = sum(row["options"][pick(row["options"])] == row["target"] for row in rows)
    assert log.results.scores[0].metrics["accuracy"].value == pytest.approx(right / len(rows))
    theirs = import_replies(log.location.removeprefix("file://"), world)
    assert hits(theirs.results) == hits(score(world, Rule(), tasks=["itt"]).results)  # type: ignore[arg-type]


def test_lmms_eval_s_yaml_by_its_documented_rules(world: Benchmark, tmp_path: Path) -> None:
    import pyarrow.parquet as pq
    import yaml

    files = export_lmms(world, tmp_path / "task")
    functions = []

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: functions.append(loader.construct_scalar(node)))
    (path,) = [f for f in files if f.suffix == ".yaml"]
    config = yaml.load(path.read_text(encoding="utf-8"), Loader=Loader)
    assert config["task"] == path.stem == "creperie_my_world"
    assert config["output_type"] == "generate_until"
    table = pq.read_table(config["dataset_kwargs"]["data_files"][config["test_split"]])
    assert config["doc_to_target"] in table.column_names
    namespace: dict[str, Any] = {}
    exec((tmp_path / "task" / "utils.py").read_text(encoding="utf-8"), namespace)
    assert {f.removeprefix("utils.") for f in functions} <= set(namespace)
    doc = table.slice(0, 1).to_pylist()[0]
    wrong = next(k for k, option in enumerate(doc["options"]) if option != doc["target"])
    assert namespace["process_results"](doc, [f"({wrong + 1})"]) == {config["metric_list"][0]["metric"]: 0.0}


def pairs_of(world: Benchmark) -> Benchmark:
    return world.filter([len(item.captions) == 2 and len(item.images) == 1 for item in world])


def answered_sample(number: int, item: Item, form: str) -> dict[str, Any]:
    """A row as the harness writes it; every second item offers its captions the other way round."""
    a, b = options = item.captions[:: -1 if number % 2 else 1]
    letter, key = "AB"[pick(options)], "BA"[options[0] == item.captions[0]]
    if form == "vlmeval":
        return {"index": number, "question": "Which?", "A": a, "B": b, "answer": key, "prediction": f"{letter}."}
    if form == "lmms":  # its tracker drops the document and unpacks single answers
        return {"doc_id": number + 50, "input": f"Which?\nA. {a}\nB. {b}", "target": key, "filtered_resps": letter}
    if form == "lm-eval":
        spoken = {f"gen_args_{k}": {"arg_0": "Caption:", "arg_1": f" {o}"} for k, o in enumerate(options)}
        said = [[str(len(o) - k / 9), "False"] for k, o in enumerate(options)]
        gold = str(options.index(item.captions[0]))
        return {"doc_id": number + 50, "doc": {}, "arguments": spoken, "filtered_resps": said, "target": gold}
    if form == "place":  # lm-eval's task over the items in their order
        said = [[float(c == options[pick(options)]), False] for c in item.captions]
        return {"doc_id": number, "doc": {"query": "?"}, "filtered_resps": said, "target": "0"}
    right = {"value": "CI"[options[pick(options)] != item.captions[0]]}
    if number % 3 == 1:  # a scorer of one's own, that says no more than whether it is right
        about = {"item": item.id, "image": item.images[0]}
        return {"id": item.id, "epoch": 1, "metadata": about, "scores": {"mine": right}}
    scores = {"choice": {**right, "answer": letter}}
    return {"id": number, "epoch": 1, "choices": options, "target": [key], "scores": scores}


def inspect_log(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """An .eval file; Inspect packs by Zstandard (method 93), which Python's zipfile only writes from 3.14 on."""
    import pyarrow as pa

    files = {f"samples/{r['id']}_epoch_1.json": r for r in rows} | {"header.json": {"eval": {"model": "mock/model"}}}
    with zipfile.ZipFile(path, "w") as archive:
        for name, row in files.items():
            data = json.dumps(row).encode()
            archive.writestr(name, bytes(pa.Codec("zstd").compress(data)))
            archive.getinfo(name).compress_type, archive.getinfo(name).file_size = 93, len(data)


@pytest.mark.parametrize("form", ["lmms", "lm-eval", "place", "vlmeval", "inspect"])
def test_logs_of_harnesses_become_runs_and_unmatched_rows_are_listed(
    world: Benchmark, tmp_path: Path, form: str
) -> None:
    bench = pairs_of(world)
    rows = [answered_sample(k, item, form) for k, item in enumerate(bench)]
    file = tmp_path / f"mine_2026-11-15.{ {'inspect': 'eval', 'vlmeval': 'tsv'}.get(form, 'jsonl') }"
    if form == "inspect":
        inspect_log(file, [*rows, {"id": "late", "epoch": 1, "error": {"message": "time is up"}}])
    elif form == "vlmeval":
        file.write_text("\n".join("\t".join(map(str, cells)) for cells in (rows[0], *(r.values() for r in rows))))
    else:
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    orders = [item.captions[:: -1 if k % 2 else 1] for k, item in enumerate(bench)]
    won = sum(order[pick(order)] == item.captions[0] for order, item in zip(orders, bench, strict=True))
    run = import_replies(file, bench)
    assert (run.model, hits(run.results)["all"][0]) == (f"samples:{'mock/model' if form == 'inspect' else 'mine'}", won)
    assert ("1 samples ended with an error and have no answer" in run.document["notes"]) == (form == "inspect")
    strangers = bench.filter([k > 0 for k in range(len(bench))])
    with pytest.raises(UnmatchedError, match=f"1 of {len(bench)} rows match no item"):
        import_replies(file, strangers)
    run = import_replies(file, strangers, partial=True)
    assert (len(run.document["unmatched"]), run.scored) == (1, len(strangers))


LOGS = ["lmms", "lm-eval", "place", "vlmeval", "inspect"]


def log_of(rows: Sequence[dict[str, Any]], form: str, file: Path) -> Path:
    """A file of such rows as the harness writes it."""
    file = file.with_suffix({"inspect": ".eval", "vlmeval": ".tsv"}.get(form, ".jsonl"))
    if form == "inspect":
        inspect_log(file, rows)
    elif form == "vlmeval":
        file.write_text("\n".join("\t".join(map(str, cells)) for cells in (rows[0], *(r.values() for r in rows))))
    else:
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


@pytest.mark.parametrize("form", LOGS)
def test_a_log_whose_own_key_contradicts_the_benchmark_is_refused(world: Benchmark, tmp_path: Path, form: str) -> None:
    """The captions of every row were those of the next: the run of a model with 80 % became one of 20 %."""
    bench = pairs_of(world)
    rows = [answered_sample(k, item, form) for k, item in enumerate(bench)]
    turned = {"A": "B", "B": "A", "0": "1", "1": "0"}
    for number, row in enumerate(rows):
        for name in ("target", "answer"):
            if name in row:
                row[name] = turned[row[name][0]]
            elif form == "inspect" and name == "target":  # a scorer of one's own
                row[name] = next(item for k, item in enumerate(bench) if k == number).captions[1]
    file = log_of(rows, form, tmp_path / "turned")
    with pytest.raises(UnmatchedError, match="its own key names another caption as the right answer"):
        import_replies(file, bench, partial=True)


@pytest.mark.parametrize("form", LOGS)
def test_orders_and_repeated_answers_are_said_where_there_are_any(world: Benchmark, tmp_path: Path, form: str) -> None:
    """Likelihoods of captions that stood alone have no order; answers to one question twice were averaged unsaid."""
    bench = pairs_of(world)
    rows = [answered_sample(k, item, form) for k, item in enumerate(bench)]
    notes = import_replies(log_of(rows, form, tmp_path / "once"), bench).document["notes"]
    assert any("in only one order" in note for note in notes) == (form not in ("lm-eval", "place"))
    again = [{**rows[0], "id": "again"} if form == "inspect" else rows[0]]
    if form == "inspect":
        again[0]["metadata"] = {"item": next(iter(bench)).id}
    notes = import_replies(log_of([*rows, *again], form, tmp_path / "twice"), bench).document["notes"]
    assert any(note.startswith(f"1 of {len(bench)} questions were answered more than once") for note in notes)


def test_answers_that_the_log_judges_differently_are_counted(world: Benchmark, tmp_path: Path) -> None:
    bench = pairs_of(world)
    rows = [answered_sample(k, item, "inspect") for k, item in enumerate(bench)]
    chosen = [row for row in rows if "choice" in row["scores"]]
    for row in chosen[:2]:
        given = row["scores"]["choice"]
        given["value"] = "CI"[given["value"] == "C"]
    notes = import_replies(log_of(rows, "inspect", tmp_path / "mine"), bench).document["notes"]
    assert f"2 of {len(bench)} answers are judged differently by the log" in notes


def test_unreadable_answers_are_counted_by_subset_and_the_model_is_named(world: Benchmark, tmp_path: Path) -> None:
    """Four in one subset were shown as four in each."""
    from creperie.cli.app import cli

    bench = save(replace(pairs_of(world), name="wor.ld"), tmp_path / "pairs")
    rows = [answered_sample(k, item, "vlmeval") for k, item in enumerate(bench)]
    first = next(iter(bench)).subset
    for row, item in zip(rows, bench, strict=True):
        row["prediction"] = "Hard to say." if item.subset == first else row["prediction"]
    file = log_of(rows, "vlmeval", tmp_path / "llava_v1.5_Wor.ld50")
    file = file.rename(tmp_path / "llava_v1.5_Wor.ld50.tsv")
    args = ["runs", "import", str(file), "--bench", str(tmp_path / "pairs"), "--out", str(tmp_path)]
    shown = CliRunner().invoke(cli, args).output.splitlines()
    table = [line.split() for line in shown if line.startswith("samples:llava_v1.5 ")]
    unread = {line[2]: int(line[-1]) for line in table}
    assert unread == {s: sum(item.subset == s == first for item in bench) for s in unread}
    assert len(unread) == 2


def test_items_with_two_and_with_three_captions_are_asked_in_as_many_orders_as_they_have(
    world: Benchmark, tmp_path: Path
) -> None:
    """Pairs have two orders and triples six: beside triples, every pair lost its score."""
    said = [
        {"doc_id": k, "filtered_resps": f"({pick(q.about['options']) + 1})"} for k, q in enumerate(questions_of(world))
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, said)), encoding="utf-8")
    theirs = import_replies(tmp_path / "mine.jsonl", world)
    assert hits(theirs.results) == hits(score(world, Rule(), tasks=["itt"]).results)  # type: ignore[arg-type]


def test_an_image_says_which_of_the_items_with_the_same_captions_is_meant(tmp_path: Path) -> None:
    match = ((True, False),)
    bench = from_items("b", [Item(n, "s", (f"{n}.png",), ("a dog", "a cat"), match) for n in "xy"])
    asked = {"doc_id": 9, "doc": {"image": "y.png", "options": ["a dog", "a cat"]}, "filtered_resps": "A"}
    unclear = {**asked, "doc": {"options": ["a dog", "a cat"]}}
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, (asked, unclear))), encoding="utf-8")
    run = import_replies(tmp_path / "mine.jsonl", bench, partial=True)
    assert [np.isnan(row).all() for row in run.scores("image_text").reshape(2, 2)] == [True, False]
    assert [row["why"] for row in run.document["unmatched"]] == ["fits 2 items, and no image says which"]


def test_answers_that_follow_the_order_of_options_are_ties_and_said_to_be(world: Benchmark, tmp_path: Path) -> None:
    """Each question was asked in both orders; "the first" is right once in two times, and prefers no caption."""
    from creperie.cli.app import cli

    bench = save(pairs_of(world), tmp_path / "pairs")
    lines = [json.dumps({"doc_id": k, "filtered_resps": "(1)"}) for k in range(2 * len(bench))]
    (tmp_path / "first.jsonl").write_text("\n".join(lines), encoding="utf-8")
    args = ["runs", "import", str(tmp_path / "first.jsonl"), "--bench", str(tmp_path / "pairs"), "--out", str(tmp_path)]
    shown = CliRunner().invoke(cli, args).output
    assert "8 of 8 items are ties and count as wrong" in " ".join(shown.split())
    assert [word for word in ("ties", "chance", "50.0") if word not in shown] == []


@pytest.mark.parametrize(
    ("kept", "says", "scored"),
    [
        (lambda k: k % 2 == 0, "every question was asked in only one order", 8),
        (lambda k: k not in (1, 3), "2 items were asked in fewer orders", 6),
    ],
)
def test_one_order_alone_is_no_evidence(
    world: Benchmark, tmp_path: Path, kept: Callable[[int], bool], says: str, scored: int
) -> None:
    """A model that always answers "the first" was 100 % right where only one order of each item was in the log."""
    bench = pairs_of(world)
    lines = [json.dumps({"doc_id": k, "filtered_resps": "(1)"}) for k in range(2 * len(bench)) if kept(k)]
    (tmp_path / "first.jsonl").write_text("\n".join(lines), encoding="utf-8")
    run = import_replies(tmp_path / "first.jsonl", bench, partial=True)
    assert any(says in note for note in run.document["notes"])
    assert run.scored == scored


@pytest.mark.parametrize("form", ["inspect", "inspect-attached", "lmms"])
def test_the_captions_of_a_row_must_be_those_of_its_id_and_missing_items_are_said(
    world: Benchmark, tmp_path: Path, form: str
) -> None:
    """Right ids with the question of another item passed in silence; so did a log of half of the items."""
    bench = pairs_of(world)
    asked = [(q.row, q.row) for q in questions_of(bench)]

    def read(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]], partial: bool = False) -> Run:
        samples = []
        for own, shown in pairs:  # the id of one question, the content of another
            text, about = shown["question"], {"options": shown["options"]}
            said = {"output": {"completion": "(1)"}}
            sample: dict[str, Any] = {"id": own["id"], "input": text, "metadata": about, **said}
            if form == "inspect-attached":
                sample |= {"input": "attachment://7", "attachments": {"7": text}, "metadata": {}}
            lmms = {"doc_id": 0, "doc": {"id": own["id"]}, "input": text, "filtered_resps": "(1)"}
            samples.append(lmms if form == "lmms" else sample)
        file = tmp_path / "log.json"
        file.write_text(json.dumps(samples if form == "lmms" else {"samples": samples}), encoding="utf-8")
        return import_replies(file, bench, partial=partial)

    whole = read(asked)
    assert (whole.scored, whole.document["unmatched"]) == (len(bench), [])
    foreign = [(own, asked[-1][0]) for own, _ in asked[:2]] + asked[2:]
    with pytest.raises(UnmatchedError, match="its captions are not those of the item that it names"):
        read(foreign)
    half = read(asked[: len(bench)], partial=True)
    said = f"{len(bench) // 2} of {len(bench)} items have no answer and are not in the figures"
    assert said in half.document["notes"]
    assert any(said.replace("answer", "score") in note for note in compare(whole, half).notes)
    assert whole.name != half.name


def test_a_response_matrix_becomes_runs_with_blind_twins(tmp_path: Path) -> None:
    from creperie.cli.app import cli
    from creperie.scoring import load_run

    (tmp_path / "m.csv").write_text("model,x1,x2,?x1,?x2\none,1,0,0,\ntwo,true,wrong,0.0,1\n", encoding="utf-8")
    args = ["runs", "import", str(tmp_path / "m.csv"), "--columns", "x*", "--blind", "?", "--out", str(tmp_path / "r")]
    with pytest.raises(UsageError, match="how many options"):
        cli.main(args, standalone_mode=False)
    done = CliRunner().invoke(cli, [*args, "--choices", "4", "--json"])
    runs = [load_run(one["run"]) for one in json.loads(done.stdout)["runs"]]
    figures = [f"{r.model} {r.blinded} {r.results[0]['hits']} of {r.results[0]['n']}" for r in runs]
    assert figures == ["table:one  1 of 2", "table:two  1 of 2", "table:one none 0 of 1", "table:two none 1 of 2"]
    assert runs[0].results[0]["chance"] == 0.25
    grouped = import_responses(tmp_path / "m.csv", options=ResponseOptions(4, columns="x*", group=r"x(\d)"))
    assert set(grouped[0].subsets) == {"1", "2"}
    assert grouped[0].name != import_responses(tmp_path / "m.csv", options=ResponseOptions(4, columns="x*"))[0].name
    for row, says in (("one,1,1,,", "has the model 'one' twice"), ("six,maybe,1,,", "x1: 'maybe' is neither right, ")):
        (tmp_path / "bad.csv").write_text(f"model,x1,x2,?x1,?x2\none,1,0,0,\n{row}\n", encoding="utf-8")
        with pytest.raises(DataError, match=rf"bad\.csv:3: {says}"):
            import_responses(tmp_path / "bad.csv", options=ResponseOptions(4, columns="x*"))
    for name, row in (("one", {"columns": "y*"}), ("two", {"columns": "x*", "blind": "!"})):
        says = {"one": r"no column matches 'y\*'", "two": "no column begins with '!'"}[name]
        with pytest.raises(UsageError, match=says):
            import_responses(tmp_path / "m.csv", options=ResponseOptions(4, **row))
    for group, says in (("(", "not a regular expression"), ("z", "matches none of the")):
        with pytest.raises(UsageError, match=says):
            import_responses(tmp_path / "m.csv", options=ResponseOptions(4, columns="x*", group=group))


def test_a_matrix_is_read_either_way_and_conditions_are_not_taken_for_items(tmp_path: Path) -> None:
    """60 items in rows were taken for 60 models; items asked without their question counted as further items."""
    (tmp_path / "m.csv").write_text("model,x1,x2\none,1,NA\ntwo,1,0\n")
    (tmp_path / "t.csv").write_text("item,one,two\nx1,1,1\nx2,NA,0\n")
    (tmp_path / "u.csv").write_text("name,x1\none,1\ntwo,0\n")
    (tmp_path / "c.csv").write_text("model,x1,x2,<no q>x1,<no q>x2\none,1,0,1,1\n")
    (tmp_path / "s.csv").write_text("model,x1,s/x1\none,1,0\n")
    (tmp_path / "semi.csv").write_text("model;x1\none;1\n")
    with pytest.raises(DataError, match="has only one column; separate cells by commas"):
        import_responses(tmp_path / "semi.csv", options=ResponseOptions(4))
    (tmp_path / "a.csv").write_text("model,x1,x2,x3\none,0.5,0.7,0.2\n")  # right if above, not if equal
    (scored,) = import_responses(tmp_path / "a.csv", options=ResponseOptions(4, above=0.5))
    assert [scored.results[0][name] for name in ("hits", "ties", "n")] == [1, 0, 3]
    four = ResponseOptions(4)
    runs, turned = ({r.model: r for r in import_responses(tmp_path / f, options=four)} for f in ("m.csv", "t.csv"))
    assert runs.keys() == turned.keys() == {"table:one", "table:two"}
    two = [*runs.values()]
    assert [row.subset for row in compare(*two).rows] == ["all"]  # one subset: one test, which Holm leaves as it is
    assert compare(*two).rows[0].comparison.p_holm == compare(*two).rows[0].comparison.p
    for model, run in runs.items():
        assert run.scores("image_text").tobytes() == turned[model].scores("image_text").tobytes()
    assert "2 models × 1 items" in import_responses(tmp_path / "u.csv", options=four)[0].document["notes"][0]
    with pytest.raises(UsageError, match="2 of 4 columns are named like another one after the prefix <no q>"):
        import_responses(tmp_path / "c.csv", options=four)
    assert len(import_responses(tmp_path / "c.csv", options=replace(four, columns="*"))[0]) == 4
    bench = from_items("b", [Item("x1", "s", (), ("a", "b"), ((True, False),))])
    with pytest.raises(DataError, match="columns 'x1' and 's/x1' are the same item"):
        import_responses(tmp_path / "s.csv", bench, replace(four, columns="*"))


def test_seedbench_answers_agree_with_their_table(shared_data: Path) -> None:
    """Shares of right answers by pandas, McNemar's test by statsmodels."""
    import pandas as pd
    from statsmodels.stats.contingency_tables import mcnemar

    from creperie.scoring import ResponseOptions, compare, import_responses

    file = shared_data / "outside/responses/seedbench_normal.csv"
    runs = import_responses(file, options=ResponseOptions(choices=4, columns="[0-9]*"))
    table = pd.read_csv(file, index_col=0).filter(regex="^[0-9]")
    assert [r.results[0]["accuracy"] for r in runs] == table.mean(axis=1).tolist()
    row = compare(runs[8:10]).rows[0].comparison  # gpt-4o and gpt-4o-mini
    reference = mcnemar(pd.crosstab(table.iloc[8], table.iloc[9]), exact=True)
    assert row.mcnemar.p == pytest.approx(reference.pvalue)


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("id,subset,score_0,score_1", "{id},{subset},{a},{b}"),
        ("id,subset,scores", '{id},{subset},"[{a}, {b}]"'),
        ("id,subset,choice", "{id},{subset},{b}"),
        ("", '{{"id": "{id}", "subset": "{subset}", "scores": [{a}, {b}]}}'),
    ],
)
def test_a_plain_table_becomes_a_run(world: Benchmark, tmp_path: Path, head: str, row: str) -> None:
    bench = pairs_of(world)
    best = [pick(item.captions) for item in bench]
    rows = [row.format(id=i.id, subset=i.subset, a=1 - b, b=b) for i, b in zip(bench, best, strict=True)]
    file = tmp_path / ("mine.csv" if head else "mine.jsonl")
    file.write_text("\n".join([head, *rows]).lstrip())
    run = import_replies(file, bench, model="my/model")
    assert run.model == "table:my/model"
    assert hits(run.results)["all"][0] == best.count(0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,choice\nnobody,0\n", "1 of 1 rows match no item"),
        ("id,choice\nTWICE,0\n", "2 items have the id"),
        ("id,subset,choice\nFIRST,-1\n", "row 1 has no scores .*choice is -1, but there are 2 captions"),
        ('id,subset,scores\nFIRST,"[1, 2, 3]"\n', "3 scores for item"),
        ('id,subset,scores\nnobody,s,"[1, 2]"\n', "no item is called s/nobody"),
        ("id,subset,choice\nFIRST,0\nFIRST,1\n", "row 2 answers the item .* again, after row 1"),
        ("", "is empty; the first line must name the columns"),
    ],
)
def test_tables_that_do_not_fit_are_named(world: Benchmark, tmp_path: Path, text: str, says: str) -> None:
    bench = pairs_of(world)
    first = next(iter(bench))
    if "TWICE" in text:
        bench = from_items("b", [first, replace(first, subset="other")], images=bench.images)
    text = text.replace("FIRST", f"{first.id},{first.subset}").replace("TWICE", first.id)
    (tmp_path / "mine.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=says) as e:
        import_replies(tmp_path / "mine.csv", bench)
    assert "mine.csv" in str(e.value)


def test_the_command_exports_for_harnesses(world: Benchmark, tmp_path: Path) -> None:
    from creperie.cli.app import cli
    from creperie.cli.data_io import export

    for name in ("datasets", "lmms-eval", "inspect", "webdataset"):
        args = [str(Path(world.images.location).parent), "--format", name, "--out", str(tmp_path / name), "--json"]
        done = CliRunner().invoke(export, args)
        assert done.exit_code == 0, (name, done.output, done.exception)
        files = json.loads(done.stdout)["files"]
    for name in ("lmms-eval", "inspect"):
        back = CliRunner().invoke(cli, ["data", "import", str(tmp_path / name), "--format", name])
        assert "can only be written, not read; `runs import` reads its logs; export as datasets or" in str(
            back.exception
        )
    back = CliRunner().invoke(cli, ["data", "import", str(tmp_path / "webdataset"), "--format", "webdataset", "--json"])
    assert (json.loads(back.stdout)["hash"], json.loads(back.stdout)["name"]) == (world.hash, world.name)
    few = CliRunner().invoke(export, [*args[:2], "inspect", "--out", str(tmp_path / "few"), "--limit", "1"]).output
    assert "task.py" in few
    assert f"cd {tmp_path / 'few'} && inspect eval task.py --model MODEL" in "".join(few.splitlines())
    table = open_captions(files[0]).piece(0)  # the tar file, as the reader of WebDataset sees it
    assert table.column("text").to_pylist() == [item.positives[0] for item in world]
    bare = save(replace(pairs_of(world), images=NO_IMAGES), tmp_path / "bare")
    args = ["data", "export", str(tmp_path / "bare"), "--out", str(tmp_path / "x"), "--format"]
    for more, says in (
        (["webdatset"], "did you mean 'webdataset'"),
        (["datasets"], "pass their location with `images=`"),
        (["datasets", "--images", world.images.location], ""),
    ):
        done = CliRunner().invoke(cli, [*args, *more])
        assert says in str(done.exception or "")
        assert (done.exit_code == 0) == (not says)
    assert len(bare) == 8
    gone = CliRunner().invoke(cli, ["data", "export", "x", "--format", "mteb", "--out", str(tmp_path / "gone")])
    assert isinstance(gone.exception, UsageError)
    assert "was removed; pass --format datasets" in str(gone.exception)
