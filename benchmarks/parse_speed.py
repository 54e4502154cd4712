"""How fast the grammar and rule makers are, beside the bare parser: at least 90 % of its throughput is wanted.

    python benchmarks/parse_speed.py [--captions FILE|BENCH] [--n 20000] [--quick] [--makers rules:swap rules:add]

Both parse the same captions with the same pipeline, in turns (makers without the parts of speech, which no rule asks
for). A maker parses more than the captions: every sentence that it writes is parsed again. So two figures are shown:
documents parsed in a second, by which the maker's own work is judged, and captions in a second, which also counts those
second parses. spaCy's pipeline as it is loaded without creperie (its exceptions matched in every text instead of looked
up) stands beside them, with the share of it that makers reach. Without --captions, captions are written from templates,
of which one in ten has an alternation. Times are of the processor, on one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import spacy

from creperie.lang.parser import BATCH, UNUSED, default_parser, load_parser
from creperie.making import Captions, Maker, MakerOptions, SourceCaption, build_maker, read_captions
from creperie.making.pipeline import work

MAKERS = ("grammar:passive", "grammar:dative", "grammar:with-against")
WANTED = 0.9


def template_captions(n: int) -> list[str]:
    """Captions of the length and kind that people write of photographs."""
    rng = random.Random(0)
    who = ["a man", "two women", "a young boy in a red shirt", "an old dog", "several people"]
    where = ["on a busy street", "near a wooden fence", "in front of a large building", "at the beach on a sunny day"]
    what = ["a brown horse", "a kite", "an umbrella", "some boxes"]
    still = ["standing", "sitting", "sleeping", "walking"]
    texts = []
    for k in range(n):
        if k % 10 == 0:
            texts.append(f"{rng.choice(who)} pushing {rng.choice(what)} {rng.choice(where)}.".capitalize())
        else:
            texts.append(f"{rng.choice(who)} {rng.choice(still)} next to {rng.choice(what)} {rng.choice(where)}.")
    return texts


def seconds_of(function: object, *args: object) -> float:
    """Seconds of the processor, so that other work on the machine does not count. Both run on one thread."""
    start = time.process_time()
    function(*args)  # type: ignore[operator]
    return time.process_time() - start


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--captions")
    arguments.add_argument("--n", type=int, default=20_000)
    arguments.add_argument("--quick", action="store_true", help="2,000 captions")
    arguments.add_argument("--turns", type=int, default=3)
    arguments.add_argument("--makers", nargs="+", default=MAKERS, help="makers to measure (default: grammar makers)")
    arguments.add_argument("--lm", default=MakerOptions().lm, help="the language model of rule makers, or none")
    chosen = arguments.parse_args()
    n = 2_000 if chosen.quick else chosen.n
    if chosen.captions:
        sources = read_captions(chosen.captions).sources[:n]
    else:
        sources = tuple(SourceCaption(str(i), text) for i, text in enumerate(template_captions(n)))
    captions = Captions("speed", sources)
    parser = load_parser()
    parsed = [0]

    def bare() -> None:
        for _ in parser.pipe([s.text for s in sources], batch_size=BATCH):
            pass

    counted = parser.pipe

    def counting(texts: object, **options: object) -> object:
        for doc in counted(texts, **options):
            parsed[0] += 1
            yield doc

    bare_seconds = min(seconds_of(bare) for _ in range(chosen.turns))
    own = spacy.load(default_parser(), exclude=list(UNUSED))
    own_seconds = min(
        seconds_of(lambda: list(own.pipe([s.text for s in sources], batch_size=BATCH))) for _ in range(chosen.turns)
    )
    rows = []
    for name in chosen.makers:
        maker = build_maker(name, MakerOptions(lm="" if chosen.lm == "none" else chosen.lm), captions)
        work(maker, sources[:200])

        def make(maker: Maker = maker) -> None:
            for k in range(0, len(sources), maker.chunk):  # as a job works
                work(maker, sources[k : k + maker.chunk])

        parser.pipe = counting
        parsed[0] = 0
        seconds = min(seconds_of(make) for _ in range(chosen.turns))
        parser.pipe = counted
        documents = parsed[0] // chosen.turns
        again = min(seconds_of(bare) for _ in range(chosen.turns))
        bare_seconds = min(bare_seconds, again)
        rate = documents / seconds
        rows.append(
            {
                "maker": name,
                "captions": len(sources),
                "documents": documents,
                "captions_per_s": round(len(sources) / seconds),
                "documents_per_s": round(rate),
                "of_bare_parser": round(rate * bare_seconds / len(sources), 3),
                "of_spacy": round(rate * own_seconds / len(sources), 3),
            }
        )
    document = {
        "spacy_per_s": round(len(sources) / own_seconds),
        "bare_parser_per_s": round(len(sources) / bare_seconds),
        "makers": rows,
        "wanted": WANTED,
    }
    print(json.dumps(document, indent=2))
    return 0 if all(row["of_bare_parser"] >= WANTED for row in rows) else 1  # type: ignore[operator]


if __name__ == "__main__":
    sys.exit(main())
