"""A Kibana server for tests: HTTP on a socket of 127.0.0.1, in this process; status, spaces, import of saved objects, alert rules.

    with KibanaDouble(version="9.5.3", spaces=("default", "perf")) as kibana:
        ...
        assert kibana.refusals == []
        kibana.objects("perf")["dashboard", "tailboard-hosts"]["attributes"]["title"]

**Nothing here is recorded: no Kibana could be run.** It follows Kibana's source as far as it is public (routes of status, spaces,
saved objects and alerting; the steps of an import; the checks of rule bodies and of an ES|QL rule's parameters) and its
documentation. So it proves that we keep to what is written there, not that a real server agrees.

What it does as written there: 401 before 400 for a missing kbn-xsrf header; `/api/status` without credentials is answered, in short;
503 and "Kibana server is not ready yet" in plain text while it starts; an import goes into a space that does not exist; an id that
exists in another space gets a new one, found again by its origin; an object of a newer version fails the whole import with 422;
missing references (of data views and searches alone) and conflicts keep everything from being written, although the other objects
are listed as successes; a rule's id must be a UUID, and is one for all spaces; PUT refuses what only POST may say.

What it cannot do it refuses with 501 and remembers in `kibana.refusals`: a test that meets that fails.
"""

from tests.doubles.kibana.server import KibanaDouble

__all__ = ["KibanaDouble"]
