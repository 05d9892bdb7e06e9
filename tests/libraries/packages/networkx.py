# package: networkx
# value: [["a", "b", "c"], 0.333]
import networkx as nx
graph = nx.Graph([("a", "b"), ("b", "c")])
[nx.shortest_path(graph, "a", "c"), round(nx.pagerank(nx.cycle_graph(3))[0], 3)]
