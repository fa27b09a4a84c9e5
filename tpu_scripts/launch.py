"""What `accelerate launch --tpu` starts on every worker of a TPU VM: pretrain.train, with its exit code.

NOT RUN ON HARDWARE. The launcher imports this file by path, calls ``main`` in one process for each chip and
drops what it returns; an exit code gets through as SystemExit only.
"""

from __future__ import annotations


def main() -> None:
    """Pretrain with the arguments of the command line."""
    from pretrain.train import main as train

    code = train()
    if code:
        raise SystemExit(code)
