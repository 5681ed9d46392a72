import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginBundle;
import org.elasticsearch.plugins.PluginsLoader;

/** One node of Elasticsearch on 127.0.0.1: RealNode HOME DATA PORT [SETTING=VALUE...]. It prints "started", and ends with its process. */
public class RealNode {
  public static void main(String[] args) throws Exception {
    Path home = Path.of(args[0]);
    LogConfigurator.registerErrorListener();
    LogConfigurator.configureWithoutConfig(Settings.EMPTY);
    Settings.Builder settings =
        Settings.builder()
            .put("path.home", home.toString())
            .put("path.data", args[1])
            .put("http.port", args[2])
            .put("transport.port", "0")
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            .put("network.host", "127.0.0.1")
            .put("cluster.max_shards_per_node", "10000")
            .put("cluster.routing.allocation.disk.threshold_enabled", false);
    for (String word : List.of(args).subList(3, args.length)) {
      settings.put(word.substring(0, word.indexOf('=')), word.substring(word.indexOf('=') + 1));
    }
    Environment environment = InternalSettingsPreparer.prepareEnvironment(settings.build(), Map.of(), home.resolve("config"), () -> "real");
    PluginsLoader plugins = PluginsLoader.createPluginsLoader(modules(environment.modulesDir()), Set.of(), Map.of(), false);
    new Node(environment, plugins).start();
    System.out.println("started");
    Thread.currentThread().join();
  }

  /** 9 asks whether they are of a stable release, too. */
  @SuppressWarnings("unchecked")
  static Set<PluginBundle> modules(Path folder) throws ReflectiveOperationException {
    for (Method method : PluginsLoader.class.getMethods()) {
      if (method.getName().equals("loadModulesBundles")) {
        Object[] words = method.getParameterCount() == 1 ? new Object[] {folder} : new Object[] {folder, false};
        return (Set<PluginBundle>) method.invoke(null, words);
      }
    }
    throw new NoSuchMethodException("loadModulesBundles");
  }
}
