"""A template for plugins: sets a greeting in the environment of new containers."""

from __future__ import annotations

from nri_resmgr.sdk.settings import Settings
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    Pod,
    RequestRejected,
    StopContainerHandler,
    serve,
)


# 1. The operator's configuration, in /etc/nri/conf.d/NN-template.conf.
class TemplateSettings(Settings, frozen=True):
    """The keys of the configuration document with their defaults."""

    greeting: str = "hello"
    annotation: str = "template.example.com/greeted"


# 2. The handlers. Their names are those of NRI's events; the plugin subscribes to the
#    events that it has a method for. With the base classes editors complete them, and
#    type checkers compare them.
class Template(ConfigureHandler, CreateContainerHandler, StopContainerHandler):
    """The plugin."""

    def __init__(self) -> None:
        self.settings = TemplateSettings()

    def configure(self, configuration: Configuration) -> None:
        """Apply the configuration; called at the start of each session."""
        self.settings = TemplateSettings.read(configuration.text)

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


# 3. The program: started by hand with flags, or by the runtime without any. The index
#    orders plugins; --index overrides it, and so does `nri-resmgr install --index`.
if __name__ == "__main__":
    serve(Template(), index="10")
