"""Script that `accelerate launch --tpu` starts on every worker of a TPU VM: pretrain.train, with its exit code.

NOT RUN ON HARDWARE. The launcher imports this file by path, calls ``main`` in one process for each chip and ignores the
returned value. An exit code is therefore raised as SystemExit.
"""

from __future__ import annotations


def main() -> None:
    """Pretrain with the arguments of the command line.

    Raises:
        SystemExit: The training ended with an exit code other than 0.
    """
    from pretrain.train import main as train

    code = train()
    if code:
        raise SystemExit(code)
