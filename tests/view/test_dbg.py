import sys; sys.path[:0]=['/work/main/tests','/work/main/tests/view']
from test_report_browser import *
def test_x(opened):
    with opened(answer_of([(0, 0, {954: 3, 956: 1}), (1, 0, {1500: 60})])) as page:
        page.locator('#heatmap').scroll_into_view_if_needed()
        print(page.evaluate("""()=>{const v=window.tailboard.views.heatmap; const m=v.scenegraph().root.items[0].items.find(f=>f.name==='heat'); return [v.origin(), m.items.map(i=>[i.x,i.y,i.width,i.height,i.bounds, i.datum.lower])]}"""))
        print(page.locator('#heatmap canvas').bounding_box())
        page.screenshot(path='/tmp/dbg.png')
        assert 0
