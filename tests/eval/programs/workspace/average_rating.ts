const [feedback] = await workspace.searchFilesByFilename({ filename: "feedback.xlsx" });
const rows = feedback.content.trim().split("\n").slice(1).map((line) => line.split(","));
const ratings = rows.map((row) => Number(row[2]));
const average = ratings.reduce((a, b) => a + b, 0) / ratings.length;
return {
  people: ratings.length,
  average: Math.round(average * 100) / 100,
  unhappy: rows.filter((row) => Number(row[2]) < 2).map((row) => row[0]),
};
