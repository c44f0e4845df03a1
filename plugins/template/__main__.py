"""A plugin to start from: greets each new container in its environment."""

from __future__ import annotations

import argparse

import msgspec
import yaml

from nri_resmgr.log.output import configure_logging
from nri_resmgr.stub import (
    Configuration,
    Container,
    ContainerAdjustment,
    Pod,
    Refused,
    serve,
)
from nri_resmgr.values.errors import InputError


# 1. The operator's configuration, in /etc/nri/conf.d/NN-template.conf.
#    An unknown key is an error, since it is probably misspelled.
class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of the configuration document with their defaults."""

    greeting: str = "hello"
    annotation: str = "template.example.com/greeted"

    @classmethod
    def parse(cls, text: str) -> Settings:
        """Read the YAML document that the runtime hands over.

        Raises:
            InputError: The sentence tells the operator what to mend.
        """
        try:
            document = yaml.safe_load(text) or {}
        except yaml.YAMLError as error:
            raise InputError(" ".join(str(error).split())) from None
        if not isinstance(document, dict):
            raise InputError("expected keys and values")
        try:
            return msgspec.convert(document, cls)
        except msgspec.ValidationError as error:
            raise InputError(str(error)) from None


# 2. What happens when. The names of the methods are those of NRI's events; a method
#    that does not exist is an event that the plugin does not subscribe to.
class Template:
    """The plugin."""

    def __init__(self) -> None:
        self.settings = Settings()

    def configure(self, configuration: Configuration) -> None:
        """Begin a session; comes again after each reconnection."""
        self.settings = Settings.parse(configuration.text)

    def create_container(self, pod: Pod, container: Container) -> ContainerAdjustment:
        """Tell what to change in a container before it is created."""
        if "GREETING" in container.environment:
            # Fails the creation. Only for what the user of the pod must mend.
            raise Refused(f"container {container.name}: GREETING is taken")
        greeting = f"{self.settings.greeting} {pod.namespace}/{pod.name}"
        return (
            ContainerAdjustment()
            .set_env("GREETING", greeting)
            .set_annotation(self.settings.annotation, container.name)
        )

    def stop_container(self, pod: Pod, container: Container) -> None:
        """Forget a container. Updates of others could be returned here."""


# 3. How it is started: by hand with flags, or by the runtime without any.
def main() -> None:
    """Run the plugin."""
    parser = argparse.ArgumentParser("template", description=__doc__)
    parser.add_argument("--name", help="as which to register; default template")
    parser.add_argument("--index", help="two digits; the order among plugins")
    parser.add_argument("--socket", metavar="PATH", help="of the runtime")
    options = parser.parse_args()
    configure_logging()  # standard error, or syslog where a runtime launched us
    serve(Template(), name=options.name, index=options.index, socket=options.socket)


if __name__ == "__main__":
    main()
