// Light, dark, or as the system: one button goes from one to the next.

const THEMES = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };

export function themeButton(onChange = () => {}) {
  const button = document.getElementById("theme");
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    const { dataset } = document.documentElement;
    dataset.theme = names[(names.indexOf(dataset.theme || "auto") + 1) % names.length];
    button.title = THEMES[dataset.theme];
    button.setAttribute("aria-label", button.title);
    onChange();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onChange);
}
