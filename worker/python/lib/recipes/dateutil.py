"""dateutil: reads time zones from files of the host."""

MODULES = "dateutil.parser dateutil.relativedelta dateutil.rrule dateutil.tz dateutil.easter dateutil.utils"


def install():
    import functools

    from dateutil import tz
    from zoneinfo import _common

    original = tz.gettz

    @functools.lru_cache(256)
    def gettz(name=None):
        """The time zone of this name, from memory; None if there is none."""
        if name and "/" in name:
            try:
                with _common.load_tzdata(name) as file:
                    return tz.tzfile(file, filename=name)
            except Exception:
                return None
        return original(name)

    tz.gettz = gettz
