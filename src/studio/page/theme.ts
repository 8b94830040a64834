import { useEffect, useState } from "preact/hooks";

/** What the person chose: a theme, or what the system has. */
export type Theme = "system" | "light" | "dark";

const KEY = "waymark-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

/** Puts the theme on the document. Called before the first paint. */
export function applyTheme(theme: Theme = stored()): void {
  const isDark = theme === "dark" || (theme === "system" && dark.matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
}

/** The theme, and a function that changes it for this browser. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(stored);
  useEffect(() => {
    const follow = (): void => applyTheme(theme);
    follow();
    dark.addEventListener("change", follow);
    return () => dark.removeEventListener("change", follow);
  }, [theme]);
  const choose = (next: Theme): void => {
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // A browser that keeps nothing has the theme until the page is closed.
    }
    setTheme(next);
  };
  return [theme, choose];
}
