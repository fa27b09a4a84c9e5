"""The configuration of a pretraining run, which is read from a YAML file."""

from __future__ import annotations

from pretrain.config.model import ModelConfig, SharingConfig
from pretrain.config.objective import ObjectiveConfig
from pretrain.config.run import LanguageConfig, ParallelConfig, PretrainConfig, StartConfig
from pretrain.config.sampling import SamplingConfig, StageConfig
from pretrain.config.training import BatchConfig, CheckpointConfig, OptimizerConfig, ValidationConfig

__all__ = [
    "BatchConfig",
    "CheckpointConfig",
    "LanguageConfig",
    "ModelConfig",
    "ObjectiveConfig",
    "OptimizerConfig",
    "ParallelConfig",
    "PretrainConfig",
    "SamplingConfig",
    "SharingConfig",
    "StageConfig",
    "StartConfig",
    "ValidationConfig",
]
