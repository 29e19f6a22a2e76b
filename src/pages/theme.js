// In the head of every page, so that the theme is there before anything is painted. The stylesheet follows `color-scheme`.
// The choice is stored where GraphiQL stores that of its own settings; without one it is that of the system.
{
  const key = 'graphiql:theme';
  const { style } = document.documentElement;
  const show = () => {
    try {
      style.colorScheme = localStorage.getItem(key) ?? '';
    } catch {
      // This browser stores nothing: a choice holds for the page.
    }
    for (const each of document.getElementsByName('theme')) each.value = style.colorScheme;
  };
  show();
  // Another tab may choose; and a page may be restored as it was, or its choice by the browser.
  for (const kind of ['storage', 'pageshow', 'themechange']) addEventListener(kind, show);
  addEventListener('change', ({ target: { name, value } }) => {
    if (name !== 'theme') return;
    style.colorScheme = value;
    try {
      if (value) localStorage.setItem(key, value);
      else localStorage.removeItem(key);
    } catch {}
    show();
  });
}
