// Every kind of result: text, an image, structured content, links, and a tool that takes its time.
const [before, image] = await everything.get_tiny_image();
const links = (await everything.getResourceLinks({ count: 4 })).slice(1);
const cities = ["New York", "Chicago", "Los Angeles"];
return {
  echo: await everything.echo({ message: "Grüße, 水門" }),
  sum: await everything.get_sum(19.5, 22.5),
  slow: await everything["trigger-long-running-operation"]({ duration: 1, steps: 4 }),
  image: [image.mimeType, image.data.length, image.data.reduce((sum: number, byte: number) => sum + byte, 0), before],
  structured: await Promise.all(cities.map((location) => everything.get_structured_content({ location }))),
  links: links.map((link: any) => [link.type, link.uri, link.mimeType]),
};
