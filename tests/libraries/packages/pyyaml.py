# package: pyyaml
# value: [{"a":[1,2]}, "b: 1\n"]
import yaml
[yaml.safe_load("a: [1, 2]"), yaml.safe_dump({"b": 1})]
