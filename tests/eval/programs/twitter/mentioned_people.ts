const tweets = await twitter.get_user_tweets({ username: "businesspro" });
const mentioned = new Set(tweets.flatMap((t) => t.mentions).map((m) => m.slice(1)));
const { following_list } = await twitter.list_all_following();
console.log([...mentioned].sort()[0], mentioned.size, "mentioned;", following_list.length, "followed");
