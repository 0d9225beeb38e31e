"""A Hugging Face configuration whose complaints name the file and the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference_math.evidence.checks import as_whole

__all__ = ["Config"]

_DEEPEST = 10_000  # layers
_OF_THE_WHOLE = ("model_type", "tie_word_embeddings", "quantization_config")  # where the language part says nothing
_LARGEST = 2**40  # of any size in a configuration: far above all there are


@dataclass(frozen=True)
class Config:
    """The content of a `config.json`; null counts as missing."""

    content: Mapping[str, object]
    file: str

    @classmethod
    def of(cls, content: Mapping[str, object], file: str) -> Config:
        """Return the configuration, of a multimodal model that of its language part."""
        for part in ("text_config", "llm_config", "language_config"):
            inner = content.get(part)
            if isinstance(inner, Mapping):
                kept = {name: content[name] for name in _OF_THE_WHOLE if name in content}
                return cls({**kept, **{name: value for name, value in inner.items() if value is not None}}, file)
        return cls(content, file)

    def get(self, field: str, default: object = None) -> Any:
        """Return what is stated, or `default`."""
        value = self.content.get(field)
        return default if value is None else value

    def whole(self, field: str, default: int | None = None, low: int = 1) -> int:
        """Return a whole number of at least `low`."""
        value = self.get(field, default)
        if value is None:
            raise ValueError(f"{self.file}: {field} is missing")
        try:
            number = as_whole(f"{self.file}: {field}", value, low)
        except (TypeError, OverflowError) as error:
            raise ValueError(f"{error!s:.200}") from error
        most = _DEEPEST if field == "num_hidden_layers" else _LARGEST
        if number > most:
            raise ValueError(f"{self.file}: {field} must be at most {most:,}, not {float(number):.3g}")
        return number

    def flag(self, field: str, default: bool) -> bool:
        """Return true or false."""
        value = self.get(field, default)
        self.refuse(not isinstance(value, bool), field, "must be true or false")
        return bool(value)

    def kinds(self, field: str, count: int, known: tuple[object, ...]) -> list[Any]:
        """Return a list of as many entries as there are layers, each of them `known`."""
        value = self.get(field)
        if value is None:
            raise ValueError(f"{self.file}: {field} is missing")
        sound = isinstance(value, Sequence) and len(value) >= count
        self.refuse(not sound, field, f"must have an entry for each of {count} layers")
        others = sorted({str(one) for one in value[:count] if one not in known})
        self.refuse(bool(others), field, f"not modelled: {', '.join(others)}")
        return list(value[:count])

    def refuse(self, refused: bool, field: str, why: str) -> None:
        """Raise ValueError that names the field, where it is refused."""
        if refused:
            raise ValueError(f"{self.file}: {field} = {self.get(field)!r:.80}: {why}")
