"""The samples of conf.d: each read by its own plugin, and saying the defaults."""

from __future__ import annotations

import pytest

from plugins.logger.__main__ import LAUNCHED_LOG_FILE, LoggerSettings
from plugins.template.__main__ import TemplateSettings
from tests.plugins.programs import SAMPLES

pytestmark = pytest.mark.process


def test_the_sample_of_the_logger_has_its_defaults() -> None:
    text = (SAMPLES / "logger.conf").read_text()

    settings = LoggerSettings.read(text)

    assert settings == LoggerSettings(log_file=LAUNCHED_LOG_FILE)
    assert LoggerSettings.read("# nothing") == LoggerSettings()


def test_the_sample_of_the_template_has_its_defaults() -> None:
    text = (SAMPLES / "template.conf").read_text()

    assert TemplateSettings.read(text) == TemplateSettings()
    assert TemplateSettings.read("# nothing") == TemplateSettings()
