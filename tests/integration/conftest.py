"""Loaded before the modules beside it: OpenMP and oneDNN read their settings when torch is imported."""

from inference_engine.execution.environment import prepare_environment

prepare_environment(threads=2)
