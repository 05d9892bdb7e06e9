const tweets = await twitter.getUserTweets({ username: "businesspro" });
const counts = {};
for (const tag of tweets.flatMap((t) => t.tags)) counts[tag] = (counts[tag] ?? 0) + 1;
return Object.entries(counts).sort((a, b) => b[1] - a[1]).slice(0, 2);
