# package: pyyaml
# value: [true, 20000000]
import os
import yaml
with open("large.yaml", "w") as file:
    yaml.dump({"text": "x y " * 5_000_000}, file, Dumper=yaml.CSafeDumper)
[os.path.getsize("large.yaml") > 20_000_000, len(yaml.load(open("large.yaml"), Loader=yaml.CSafeLoader)["text"])]
