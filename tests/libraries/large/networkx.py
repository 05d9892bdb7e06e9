# package: networkx
# value: [true, 149979, 20000]
import os
import networkx as nx
with open("large.txt", "w") as file:
    for number in range(150_000):
        file.write(f"node{number:07d}{'x' * 55} node{number * 7 % 150_000:07d}{'x' * 55}\n")
nx.write_graphml(nx.path_graph(20_000), "path.graphml")
[os.path.getsize("large.txt") > 20_000_000, nx.read_edgelist("large.txt").number_of_edges(), nx.read_graphml("path.graphml").number_of_nodes()]
