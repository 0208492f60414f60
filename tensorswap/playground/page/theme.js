// Loaded before anything is drawn, so that no page flashes in the wrong colours.
{
  const chosen = localStorage.getItem("tensorswap-theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
}
