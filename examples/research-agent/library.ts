/** A page of the library that the agent reads. */
export interface Page {
  readonly url: string;
  readonly title: string;
  readonly text: string;
}

/** Stands in for the web. */
const pages: readonly Page[] = [
  {
    url: "https://example.org/cairns",
    title: "Cairns",
    text: "A cairn is a pile of stones. Walkers follow cairns where a path can't be seen.",
  },
  {
    url: "https://example.org/cairns/history",
    title: "History of cairns",
    text: "Cairns have marked graves and summits since the Bronze Age.",
  },
  {
    url: "https://example.org/cairns/harm",
    title: "Harm done by cairns",
    text: "Stones taken from a stream leave animals without shelter. Wrong cairns lead walkers astray.",
  },
  {
    url: "https://example.org/lighthouses",
    title: "Lighthouses",
    text: "A lighthouse marks a coast.",
  },
];

/** The pages that have all words of the query. */
export function search(query: string): string[] {
  const words = query.toLowerCase().split(" ");
  const hits = pages.filter((page) => {
    const text = `${page.title} ${page.text}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return hits.map((page) => page.url);
}

let requests = 0;

/** Gets a page. Every third request fails, as the web does. */
export async function read(url: string): Promise<Page> {
  if (++requests % 3 === 0) throw new Error(`503 from ${url}`);
  const page = pages.find((one) => one.url === url);
  if (page === undefined) throw new Error(`404 from ${url}`);
  return page;
}
