// Loaded before anything is drawn, so that no page flashes in the wrong colours: those chosen here, else the system's.
{
  const system = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    const chosen = localStorage.getItem("tensorswap-theme");
    const kept = chosen === "dark" || chosen === "light";
    document.documentElement.dataset.theme = kept ? chosen : system.matches ? "dark" : "light";
  };
  system.addEventListener("change", follow);
  follow();
}
