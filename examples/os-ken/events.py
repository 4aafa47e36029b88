"""What the applications print: one JSON object a line, so that people and tests can both read it."""

import json
import sys


def say(event, **fields):
    sys.stdout.write(json.dumps({"event": event, **fields}, default=_readable) + "\n")
    sys.stdout.flush()


def _readable(value):
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    return repr(value)


def error_fields(message):
    """The parts of an OpenFlow ERROR that a person asks for; `data` is the start of the refused message."""
    return {"xid": message.xid, "type": message.type, "code": message.code, "data": message.data}
