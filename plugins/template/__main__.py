"""A template for plugins: sets a greeting in the environment of new containers."""

from __future__ import annotations

import argparse

import msgspec
import yaml

from nri_resmgr.log.output import configure_logging
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    InputError,
    Pod,
    RequestRejected,
    StopContainerHandler,
    serve,
)


# 1. The operator's configuration, in /etc/nri/conf.d/NN-template.conf.
#    An unknown key is an error, since it is probably misspelled.
class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of the configuration document with their defaults."""

    greeting: str = "hello"
    annotation: str = "template.example.com/greeted"

    @classmethod
    def parse(cls, text: str) -> Settings:
        """Parse the YAML document that the runtime sends.

        Raises:
            InputError: The document is not valid; the message is for the operator.
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


# 2. The handlers. Their names are those of NRI's events; the plugin subscribes to the
#    events that it has a method for. With the base classes editors complete them, and
#    type checkers compare them.
class Template(ConfigureHandler, CreateContainerHandler, StopContainerHandler):
    """The plugin."""

    def __init__(self) -> None:
        self.settings = Settings()

    def configure(self, configuration: Configuration) -> None:
        """Apply the configuration; called at the start of each session."""
        self.settings = Settings.parse(configuration.text)

    def create_container(self, pod: Pod, container: Container) -> ContainerAdjustment:
        """Return the changes to a container before it is created."""
        if "GREETING" in container.environment:
            # Fails the creation: only for errors that the user of the pod can fix.
            raise RequestRejected(f"container {container.name}: GREETING is taken")
        greeting = f"{self.settings.greeting} {pod.namespace}/{pod.name}"
        return (
            ContainerAdjustment()
            .set_env("GREETING", greeting)
            .set_annotation(self.settings.annotation, container.name)
        )

    def stop_container(self, pod: Pod, container: Container) -> None:
        """Clean up after a container; could return updates of other containers."""


# 3. The program: started by hand with flags, or by the runtime without any.
def main() -> None:
    """Run the plugin."""
    parser = argparse.ArgumentParser("template", description=__doc__)
    parser.add_argument("--name", help="name to register with; default template")
    parser.add_argument("--index", help="two digits, the order among plugins")
    parser.add_argument("--socket", metavar="PATH", help="socket of the runtime")
    options = parser.parse_args()
    configure_logging()  # standard error, or syslog if a runtime launched the plugin
    serve(Template(), name=options.name, index=options.index, socket=options.socket)


if __name__ == "__main__":
    main()
