// Each button copies the code that is shown below it.
addEventListener('click', async ({ target }) => {
  if (!target.matches('.copy')) return;
  const shown = [...target.closest('.code').querySelectorAll('pre')].find((pre) => pre.checkVisibility());
  await navigator.clipboard.writeText(shown.textContent);
  target.textContent = 'Copied';
  setTimeout(() => {
    target.textContent = 'Copy';
  }, 2000);
});
// Browsers have no clipboard for pages without TLS, but for those of the machine itself.
if (!navigator.clipboard) for (const button of document.querySelectorAll('.copy')) button.hidden = true;
