# SPDX-License-Identifier: MIT
"""Every error class: its message is filled from its fields, reads well when quoted, and crosses processes."""

from __future__ import annotations

import inspect
import pickle
from string import Formatter

import pytest

from triton_dist import errors

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, errors.TritonDistError)]


class Filler(str):
    """A value that any format accepts."""

    def __format__(self, spec: str) -> str:
        return str(self)


def make(cls: type[errors.TritonDistError]) -> errors.TritonDistError:
    names = {name for _, name, _, _ in Formatter().parse(cls.template) if name}
    return cls(**{name: Filler(f"<{name}>") for name in names})


@pytest.mark.parametrize("cls", CLASSES)
def test_message_and_pickle(cls):
    error = make(cls)
    assert all(value in str(error) or repr(value) in str(error) for value in error.fields.values())
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert str(again) == str(error)
    assert repr(error) == f"{cls.__name__}: {error}"


@pytest.mark.parametrize("cls", CLASSES)
def test_a_missing_field_is_seen(cls):
    if "{" in cls.template:
        with pytest.raises(KeyError):
            cls()
