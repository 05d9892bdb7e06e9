# package: python-dateutil
# value: ["2024-02-29T10:00:00", "2024-03-29", "CEST", 3]
from datetime import date, datetime
from dateutil import parser, relativedelta, rrule, tz
[parser.parse("29 Feb 2024 10am").isoformat(), (date(2024, 2, 29) + relativedelta.relativedelta(months=1)).isoformat(), datetime(2024, 7, 1, tzinfo=tz.gettz("Europe/Berlin")).tzname(), len(list(rrule.rrule(rrule.DAILY, count=3)))]
