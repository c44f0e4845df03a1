"""The methods of NRI's two services, with their request and response classes."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import msgspec
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nri_proto._gen import nri_pb2

PLUGIN_SERVICE: Final = "nri.pkg.api.v1alpha1.Plugin"
RUNTIME_SERVICE: Final = "nri.pkg.api.v1alpha1.Runtime"


class Method(msgspec.Struct, frozen=True):
    """One unary method of a service."""

    service: str
    name: str
    request: type[Message]
    response: type[Message]


def _methods_of(service: str) -> MappingProxyType[str, Method]:
    descriptor = nri_pb2.DESCRIPTOR.services_by_name[service.rpartition(".")[2]]
    return MappingProxyType(
        {
            method.name: Method(
                service,
                method.name,
                GetMessageClass(method.input_type),
                GetMessageClass(method.output_type),
            )
            for method in descriptor.methods
        }
    )


PLUGIN_METHODS: Final = _methods_of(PLUGIN_SERVICE)
RUNTIME_METHODS: Final = _methods_of(RUNTIME_SERVICE)
