# package: duckdb
# value: [["x", 3], ["y", 3]]
import duckdb
connection = duckdb.connect(":memory:")
connection.execute("create table t as select * from (values (1, 'x'), (3, 'y'), (2, 'x')) as v(a, b)")
connection.execute("select b, sum(a)::int from t group by b order by b").fetchall()
