"""Seconds to load a GGUF model: the first time, when its weights are dequantised and kept, and again.

    python research/gguf_load.py lm:path/to/model.gguf …

Every load is a process of its own, with a cache that begins empty; processor seconds, peak memory.
Importing torch and transformers is timed apart ("libraries").
The first caption is scored after each load, since weights that are mapped from disk are read when they are used.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile

LOAD = """
import json, resource, sys, time
began = time.process_time()
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.generation import GenerationMixin
from transformers.models.qwen2 import modeling_qwen2
from creperie.models import load_model
imported = time.process_time()
model = load_model(sys.argv[1], device="cpu")
loaded = time.process_time()
score = float(model.score_texts(["A dog runs across the lawn."])[0])
used = resource.getrusage(resource.RUSAGE_SELF)
seconds = {"import": imported - began, "load": loaded - imported, "first caption": time.process_time() - loaded}
print(json.dumps({**seconds, "GB": used.ru_maxrss / 1e6, "score": score}))
"""


def main() -> None:
    heads = ["model", "", "libraries, s", "load, s", "first caption, s", "peak GB"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for uri in sys.argv[1:]:
        place = tempfile.mkdtemp(prefix="gguf-", dir=os.environ.get("TMPDIR"))
        try:
            for name in ("first", "again", "again"):
                done = subprocess.run(
                    [sys.executable, "-c", LOAD, uri],
                    env={**os.environ, "CREPERIE_CACHE": place},
                    stdout=subprocess.PIPE,
                    check=True,
                )
                t = json.loads(done.stdout.splitlines()[-1])
                cells = " | ".join(f"{t[key]:.1f}" for key in ("import", "load", "first caption", "GB"))
                print(f"| {uri.rsplit('/', 1)[-1]} | {name} | {cells} |", flush=True)
        finally:
            shutil.rmtree(place)


if __name__ == "__main__":
    main()
