"""pytz: reads time zones from its own files."""


def install():
    import pytz
    from zoneinfo import _common

    pytz.open_resource = lambda name: _common.load_tzdata(name)
