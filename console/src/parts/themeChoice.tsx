/** The theme: that of the system, light or dark. The gateway has a script in every page (`src/pages/theme.js`) that applies a choice. */
export const ThemeChoice = () => (
  <select name="theme" aria-label="Theme" title="Theme" value={document.documentElement.style.colorScheme}>
    <option value="">System</option>
    <option value="light">Light</option>
    <option value="dark">Dark</option>
  </select>
);
