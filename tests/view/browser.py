"""A page in the browser, and the few things that tests do with it."""


class Page:
    """One page, loaded anew: in light, in a window of 1280 by 800."""

    def __init__(self, driver, path):
        self.driver = driver
        self.resize(1280, 800)
        self.dark(False)
        driver.get("about:blank")
        driver.get(path.as_uri())
        self.wait(lambda: self.all("#steps [aria-current]"))  # it unpacks its data first

    def resize(self, width, height):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def dark(self, dark):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def js(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, 20).until(lambda _: condition())

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def enter(self, selector, value, event="change"):
        script = "const [e, value, type] = arguments; e.value = value;"
        script += "e.dispatchEvent(new Event(type))"
        self.js(script, self.find(selector), value, event)

    def tap(self, selector):
        """A click that does not scroll; it also works on SVG."""
        event = "new MouseEvent('click', {bubbles: true})"
        self.js(f"arguments[0].dispatchEvent({event})", self.find(selector))

    def click(self, selector):
        self.js("arguments[0].scrollIntoView({block: 'center'})", self.find(selector))
        self.find(selector).click()

    @property
    def told(self):
        """The state that is shown, as the page tells it in three places, read at once."""
        slider, current, place = self.js(
            "return [document.querySelector('#slider').value,"
            " document.querySelector('#steps [aria-current] .number').textContent, location.hash]"
        )
        return int(slider), int(current), int(place.removeprefix("#"))

    @property
    def at(self):
        """The state that is shown."""
        (at,) = set(self.told)
        return at

    def go(self, at):
        """Show a state through the address, whose change the page is told of a little later."""
        self.js("location.hash = `#${arguments[0]}`", at)
        self.wait(lambda: set(self.told) == {at})

    def number(self, selector):
        return float(self.find(selector).get_attribute("data-value"))
