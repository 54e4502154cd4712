"""A very small generative image-text model for Flickr8k's photographs, trained on a CPU in minutes.

    python research/house_vlm.py --flickr8k DIR --image weights/dinov2-s/hf --out out/house-vlm --seconds 900

DINOv2-S (frozen; its 64 patches of a photograph of 112 pixels are computed once and kept in the folder) and a decoder
of two layers, trained from nothing, in LLaVA's layout: `vlm:out/house-vlm?score=visualgpt` and `?score=vqa` score it.
The map between the two starts as a reader of words: its first layer holds a ridge regression from patches to the
most frequent words of the captions, its second the decoder's own vectors of these words. Then map and decoder learn to
say a photograph's captions and to say yes or no when asked whether a caption fits (half of these captions are another
photograph's; of those, half are the likest of 32 by shared words). All that is said about one photograph stands in one
row, in which no part sees another. The prompts are the scorers' own.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import random
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn.functional import cross_entropy
from transformers import (
    AutoModel,
    CLIPImageProcessorPil,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from creperie.bench import load
from creperie.models import load_model

SIZE, PATCH, WORDS, WIDTH = 112, 14, 3000, 192
TALK = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for part in m.content %}"
    "{% if part.type == 'image' %}<image>\n{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SAID = [
    "<|im_start|>user\n\nDescribe this picture in one sentence.<|im_end|>\n<|im_start|>assistant\nYes No",
    'Does this figure show "A" "Two" "The" ."? Please answer yes or no.<|im_end|>\n<|im_start|>assistant\n',
]
COMMON = frozenset("a an the in on of and with is are at to his her its their it by while that as from for . ,".split())  # noqa: SIM905


def joined(image: Path, captions: list[str], out: Path) -> None:
    """The pretrained tower and a decoder with random weights as one folder in LLaVA's layout."""
    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    plain.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    special = ["<|im_end|>", "<|im_start|>", "<image>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=WORDS, special_tokens=special, initial_alphabet=alphabet)
    plain.train_from_iterator([*captions, *SAID * 200], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token=special[0], pad_token=special[0], extra_special_tokens=special[1:]
    )
    tower = AutoModel.from_pretrained(image, dtype=torch.float32)
    config = LlavaConfig(
        vision_config=tower.config,
        text_config=LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=WIDTH,
            intermediate_size=512,
            num_hidden_layers=2,
            num_attention_heads=6,
            max_position_embeddings=512,
            initializer_range=WIDTH**-0.5,
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
        ),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
        image_seq_length=(SIZE // PATCH) ** 2,
        tie_word_embeddings=True,
    )
    model = LlavaForConditionalGeneration(config).float()
    model.model.vision_tower.load_state_dict(tower.state_dict())
    model.tie_weights()
    square = {"height": SIZE, "width": SIZE}
    norm = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    eye = CLIPImageProcessorPil(size=square, crop_size=square, do_center_crop=False, resample=3, **norm)
    layout: dict[str, Any] = {"vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    model.save_pretrained(out)
    LlavaProcessor(eye, tokenizer, patch_size=PATCH, chat_template=TALK, **layout).save_pretrained(out)


@torch.inference_mode()
def patches(model: Any, eye: Any, file: Path, names: list[str], kept: Path) -> torch.Tensor:
    """What the frozen tower makes of every photograph, (photographs, patches, width); kept as it goes."""
    done = [torch.from_numpy(np.load(part)) for part in sorted(kept.glob("*.npy"))]
    kept.mkdir(exist_ok=True)
    with zipfile.ZipFile(file) as archive:
        for at in range(64 * len(done), len(names), 64):
            shown = [Image.open(io.BytesIO(archive.read(name))).convert("RGB") for name in names[at : at + 64]]
            pixels = eye(shown, return_tensors="pt")["pixel_values"]
            states = model.model.vision_tower(pixels, output_hidden_states=True).hidden_states[-1]  # what LLaVA reads
            done.append(states[:, 1:].clone())
            np.save(kept / f"{at:05}.npy", done[-1].numpy())
            if at % 640 == 0:
                print(f"{at} of {len(names)} photographs seen", flush=True)
    return torch.cat(done)[: len(names)]


@torch.no_grad()
def taught_words(model: Any, tokenizer: Any, seen: torch.Tensor, captions: list[list[str]]) -> None:
    """The map's beginning: patches → words by ridge regression → the decoder's vectors of these words."""
    bags = [{i for c in own for i in tokenizer(c)["input_ids"]} for own in captions]
    counts = Counter(i for bag in bags for i in bag)
    names = {i: tokenizer.decode([i]) for i in counts}
    asked = [i for i, _ in counts.most_common() if names[i][:1] == " " and names[i].strip() not in COMMON][:WIDTH]
    told = torch.tensor([[float(i in bag) for i in asked] for bag in bags])
    x = seen.mean(1)
    weight = torch.linalg.solve(x.T @ x + 0.1 * len(x) * x.var() * torch.eye(x.shape[1]), x.T @ (told - told.mean(0)))
    spread = (seen[:200] @ weight).std((0, 1))
    first, second = model.model.multi_modal_projector.linear_1, model.model.multi_modal_projector.linear_2
    first.weight.copy_((weight / spread).T)
    first.bias.fill_(-0.5)
    second.weight.copy_(model.get_input_embeddings().weight[asked].T)
    second.bias.zero_()


class Lessons:
    """What is asked and answered about a photograph."""

    def __init__(self, reader: Any, prompts: tuple[Any, Any], captions: list[list[str]], seed: int) -> None:
        self.reader, self.prompts, self.captions = reader, prompts, captions
        self.dice = random.Random(seed)
        self.pool = [(k, c, set(c.lower().split()) - COMMON) for k, own in enumerate(captions) for c in own]

    def other(self, k: int, caption: str) -> str:
        """A caption of another photograph; every second time one that is like this caption of photograph k."""
        own = set(caption.lower().split())
        drawn = [c for c in self.dice.choices(self.pool, k=32) if c[0] != k]
        alike = max(drawn, key=lambda c: len(own & c[2]) / (1 + len(c[2])))
        return (alike if self.dice.random() < 0.5 else drawn[0])[1]

    def lines(self, k: int) -> tuple[list[Any], list[Any]]:
        """Lines that describe photograph k by its captions, and lines that say whether a caption fits it."""
        describe, ask = self.prompts
        own = self.captions[k]
        asked = [(c, "Yes") if self.dice.random() < 0.5 else (self.other(k, c), "No") for c in own]
        said = self.reader.lines([(describe.text, c) for c in own], end=True)
        return list(said), list(self.reader.lines([(ask.about(c), a) for c, a in asked], end=True))


def row(opening: list[int], image: int, count: int, lines: list[Any]) -> tuple[torch.Tensor, ...]:
    """The tokens of all lines behind one image, their positions, what each may see, and which are answers."""
    head = [*opening, *[image] * count]
    ids = torch.tensor([*head, *(int(i) for line in lines for i in line.ids)])
    part = torch.tensor([0] * len(head) + [n for n, line in enumerate(lines, 1) for _ in line.ids])
    at = torch.tensor([*range(len(head)), *(len(head) + j for line in lines for j in range(len(line.ids)))])
    told = torch.tensor([False] * len(head) + [j >= line.start for line in lines for j in range(len(line.ids))])
    sees = ((part[:, None] == part[None]) | (part[None] == 0)) & (at[:, None] >= at[None])
    return ids, at, sees, told


def losses(model: Any, seen: torch.Tensor, rows: list[tuple[torch.Tensor, ...]], split: list[int]) -> torch.Tensor:
    """Mean cross-entropy of the descriptions' and of the answers' tokens. `split`: where each row's questions begin."""
    width = max(len(r[0]) for r in rows)
    ids, at = torch.zeros(2, len(rows), width, dtype=torch.long)
    sees = torch.eye(width, dtype=torch.bool).repeat(len(rows), 1, 1, 1)
    for n, (i, a, s, _) in enumerate(rows):
        ids[n, : len(i)], at[n, : len(i)], sees[n, 0, : len(i), : len(i)] = i, a, s
    words = model.get_input_embeddings()(ids)
    here = ids == model.config.image_token_id
    words = words.masked_scatter(here[..., None], model.model.multi_modal_projector(seen))
    states = model.model.language_model(
        inputs_embeds=words, attention_mask=sees, position_ids=at, use_cache=False
    ).last_hidden_state
    found: list[list[torch.Tensor]] = [[], []]
    for n, (i, _, _, told) in enumerate(rows):
        where = told.nonzero()[:, 0]
        # the state of the token before foretells a token; both are in one line, since an answer has a prompt before it
        loss = cross_entropy(model.lm_head(states[n, where - 1]), i[where], reduction="none")
        found[0].append(loss[where < split[n]])
        found[1].append(loss[where >= split[n]])
    return torch.stack([torch.cat(part).mean() for part in found])


def train(asked: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(asked.seed)
    captions: dict[str, list[str]] = {}
    for item in load(f"flickr8k:{asked.flickr8k}").only(["train"]):
        captions.setdefault(item.images[0], []).extend(item.captions)
    names = sorted(captions)
    random.Random(asked.seed).shuffle(names)
    joined(asked.image, [c for n in names for c in captions[n]], asked.out)
    names = names[: asked.photographs]
    talk: Any = load_model(f"vlm:{asked.out}?score=visualgpt", device="cpu")
    scorer: Any = load_model(f"vlm:{asked.out}?score=vqa", device="cpu")
    reader = talk.engine.reader
    model: Any = LlavaForConditionalGeneration.from_pretrained(asked.out, dtype=torch.float32)
    began = time.perf_counter()
    eye = reader.processor.image_processor
    seen = patches(model.eval(), eye, asked.flickr8k / "images.zip", names, asked.out / "patches")
    looked = time.perf_counter() - began
    mean, scale = seen.mean((0, 1)), seen.std((0, 1))
    seen = (seen - mean) / scale  # the map's first layer takes this over at the end
    lessons = Lessons(reader, (talk.prompt, scorer.prompt), [captions[n] for n in names], asked.seed)
    taught_words(model, reader.tokenizer, seen, lessons.captions)
    opening = [int(i) for i in reader.default_opening]
    model.model.vision_tower.requires_grad_(False)
    weights = [w for w in model.parameters() if w.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=asked.rate, weight_decay=0.01, betas=(0.9, 0.98))
    began, step, line = time.perf_counter(), 0, [0.0, 0.0]
    while (spent := (time.perf_counter() - began) / asked.seconds) < 1 and step < asked.steps:
        for group in optimizer.param_groups:
            group["lr"] = asked.rate * min(1, (step + 1) / 20) * (0.5 + 0.5 * math.cos(math.pi * spent))
        chosen = lessons.dice.sample(range(len(names)), min(asked.batch, len(names)))
        both = [lessons.lines(k) for k in chosen]
        rows = [row(opening, model.config.image_token_id, seen.shape[1], [*a, *b]) for a, b in both]
        split = [len(opening) + seen.shape[1] + sum(len(x.ids) for x in said) for said, _ in both]
        loss = losses(model, seen[chosen], rows, split)
        (loss[0] + 2 * loss[1]).backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        line = [0.95 * old + 0.05 * new if step > 1 else new for old, new in zip(line, loss.tolist())]
        if step % 50 == 1:
            print(f"{100 * spent:.0f} %, step {step}: caption {line[0]:.3f}, yes or no {line[1]:.3f}", flush=True)
    first = model.model.multi_modal_projector.linear_1
    with torch.no_grad():
        first.weight /= scale
        first.bias -= first.weight @ mean
    model.eval().save_pretrained(asked.out)
    seconds = round(time.perf_counter() - began)
    trained = sum(w.numel() for w in weights)
    document = {"steps": step, "batch": asked.batch, "photographs": len(names), "seconds": seconds, "weights": trained}
    return document | {"seconds_of_patches": round(looked), "caption": line[0], "yes_or_no": line[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flickr8k", type=Path, required=True)
    parser.add_argument("--image", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--steps", type=int, default=10**6)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--photographs", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    told = train(asked)
    print(json.dumps(told))
    (asked.out / "training.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main()
