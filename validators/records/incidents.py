"""incidents: alarms, as they open and close."""

from typing import Literal

from ..columns import Id, Json, Record, Text, Time, required


class Incident(Record):
    """An alarm that opened or closed."""

    event_id: Id = required("incident and event: each is noted once")
    incident_id: Id = required("kind, subject and the number of its opening")
    kind: Literal["dead_streak", "no_gradient", "type_starved", "all_refused"] = required(
        "what went wrong"
    )
    subject: Text = required("the stream, the task type or the gate that it is about")
    event: Literal["opened", "closed"] = required("what happened to the alarm")
    at: Time = required("when")
    figures: Json = required("JSON object of the figures behind it")
