// Where the data come from. Three containers (see unpack.js): "model", "overview", "documents"; the last two may be
// absent. A report carries them as base64 text in <script type="text/plain" id="kt-NAME">. A server names a place in
// <meta name="keytokens-source" content="some/path/"> and answers GET some/path/NAME with the same bytes; 404: absent.

import { fromBase64, unpack } from "./unpack.js";

/** (name) => Promise of {facts, arrays} or null. */
export function sourceOf(page) {
  const place = page.querySelector('meta[name="keytokens-source"]');
  return place ? remote(place.content) : embedded(page);
}

function embedded(page) {
  return async (name) => {
    const element = page.getElementById(`kt-${name}`);
    if (!element) return null;
    const bytes = fromBase64(element.textContent);
    element.remove(); // megabytes of text that nobody needs any more
    return unpack(bytes);
  };
}

function remote(place) {
  return async (name) => {
    const answer = await fetch(place + name);
    if (answer.status === 404) return null;
    if (!answer.ok) throw new Error(`the server answered ${answer.status} for ${name}`);
    return unpack(await answer.arrayBuffer());
  };
}
