const commented = {};
for (const tweet of await twitter.search_tweets({ keyword: "#success" })) {
  await twitter.comment({ tweet_id: tweet.id, comment_content: "Congratulations!" });
  const comments = await twitter.get_tweet_comments({ tweet_id: tweet.id });
  commented[tweet.id] = comments[comments.length - 1].content;
}
return commented;
