# task: Resample a time series by week, with a moving average, in another time zone
# value: {"weeks":[1.0,8.0],"moving":[2.0,3.0,4.0],"zone":"2024-01-01T01:00:00+01:00"}
import pandas as pd
days = pd.date_range("2024-01-01", periods=10, freq="D", tz="UTC")
series = pd.Series(range(1, 11), index=days, dtype=float)
weekly = series.resample("W-SUN").min()
moving = series.rolling(3).mean().dropna().head(3)
{"weeks": weekly.tolist(), "moving": moving.tolist(), "zone": days.tz_convert("Europe/Berlin")[0].isoformat()}
