/** The colours of the page: light, dark, or those of the system. The choice is stored in `localStorage`, for all tabs. */

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const key = 'dovetail-theme';

export const readTheme = (): Theme => themes.find((theme) => theme === localStorage.getItem(key)) ?? 'system';

export function storeTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(key);
  else localStorage.setItem(key, theme);
  applyTheme();
}

/** Every colour of the style sheet follows `color-scheme`. */
export function applyTheme(): void {
  const theme = readTheme();
  document.documentElement.style.colorScheme = theme === 'system' ? '' : theme;
}
