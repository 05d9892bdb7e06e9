const stats = await twitter.getUserStats({ username: "businesspro" });
const tweet = await twitter.postTweet({
  content: `I have written ${stats.tweet_count} tweets and follow ${stats.following_count} people`,
  tags: ["#statistics"],
});
return [tweet.id, tweet.content];
