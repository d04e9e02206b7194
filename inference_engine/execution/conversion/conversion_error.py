"""The error of every module that converts."""


class ConversionError(ValueError):
    """A GGUF file that can't be found, read or expressed as a transformers model."""
