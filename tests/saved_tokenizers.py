"""Encode words with tokenizer folders in a process that does not have this project."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CODE = """
import json, sys
from transformers import AutoTokenizer
found = []
for folder, words in json.load(sys.stdin):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    apart = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    text = tokenizer(" ".join(words))["input_ids"]
    specials = [getattr(tokenizer, f"{n}_token_id") for n in ("cls", "pad", "sep", "unk", "mask")]
    found.append({"apart": apart, "text": text, "specials": specials, "size": len(tokenizer)})
assert not any(m.split(".")[0] in ("synthlang", "pretrain", "probes") for m in sys.modules)
print(json.dumps(found))
"""


def encode_elsewhere(folders: Sequence[tuple[Path, Sequence[str]]]) -> list[dict[str, Any]]:
    """For each (folder, words) the ids of every word, of the text they make, and those of the specials."""
    asked = json.dumps([(str(folder.resolve()), list(words)) for folder, words in folders])
    done = subprocess.run(
        [sys.executable, "-c", CODE], input=asked, capture_output=True, text=True, check=True, cwd=folders[0][0]
    )
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found
