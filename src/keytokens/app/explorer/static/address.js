// The address says what is shown: a view and its state, as `#errors?given=spam&said=ham&text=12`.

/** The address of a view; what is empty is left out. */
export function addressOf(view, state = {}) {
  const given = Object.entries(state).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.length ? `#${view}?${new URLSearchParams(given)}` : `#${view}`;
}

/** {view, state} of an address. */
export function readAddress(hash) {
  const at = hash.includes("?") ? hash.indexOf("?") : hash.length;
  return { view: hash.slice(1, at), state: Object.fromEntries(new URLSearchParams(hash.slice(at + 1))) };
}

/** Writes a view's state into the address, and into the link that leads back to it. */
export function remember(view, state) {
  const address = addressOf(view, state);
  document.querySelector(`nav a[data-view="${view}"]`).setAttribute("href", address);
  if (readAddress(location.hash).view === view || location.hash === "") history.replaceState(null, "", address);
}
